"""What an administrator reads when an endpoint is in trouble, and the banners that say it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.llm.models import ModelEndpoint, SettingsEndpoint

_ADVICE = {
    "connect": _("No connection: check the address and that the server is running."),
    "tls": _(
        "The server's certificate is not trusted. A private authority is named by LLM_CA_FILE in the settings."
    ),
    "auth": _("The server refuses the key. Enter a valid one that may use this model."),
    "quota": _("The account at the provider has no credit left."),
    "rate_limited": _(
        "The provider limits how often this key may ask. Try again later or raise the limit there."
    ),
    "refused": _("The server does not take the request. Check the model's name and the additional fields."),
    "server": _("The server had an error of its own."),
    "broken": _("The server ended the answer in the middle."),
    "bad_data": _(
        "What answered is not a stream of this provider. Check the provider, and that the address ends in /v1."
    ),
    "empty": _("The model ended without a word. It may have used up its tokens for thinking."),
    "content_filter": _("The provider's filter refused the content."),
    "full": _("All answers allowed at a time are running."),
    "stalled_connect": _("The server did not accept a connection in time."),
    "stalled_first_data": _("The server took the question and said nothing in time."),
    "stalled_between_data": _("The server fell silent in the middle of the answer."),
    "stalled_turn": _("The answer took too long altogether."),
}


def advice(label: str) -> str:
    """One sentence on what happened and what to do."""
    return str(_ADVICE.get(label, _("It failed for an unknown reason: see the log.")))


_SHORT = {
    "auth": _("Key refused"), "quota": _("No credit"), "tls": _("Certificate"), "connect": _("No connection"),
    "rate_limited": _("Rate limited"), "refused": _("Request refused"),
}  # fmt: skip


def in_short(label: str) -> str:
    """Two words for a list."""
    return str(_SHORT.get(label, _("Failing")))


@dataclass(frozen=True, slots=True)
class Banner:
    """A warning on top of a page, in the form the entry page shows. The link is empty where no page can mend it."""

    title: str
    text: str
    link: str = ""
    action: str = ""


def banners(endpoints: Iterable[ModelEndpoint]) -> list[Banner]:
    """One for each endpoint that needs an administrator. No query."""
    return [
        Banner(
            title=gettext("%(name)s does not answer on %(site)s.")
            % {"name": endpoint.name, "site": endpoint.site},
            text=advice(endpoint.last_error_kind),
            link=reverse("admin:llm_modelendpoint_change", args=(endpoint.pk,)),
            action=gettext("Open the endpoint"),
        )
        for endpoint in endpoints
        if endpoint.needs_admin
    ]


def settings_banner(health: SettingsEndpoint) -> Banner:
    """For the endpoint of the settings, which is mended in `.env`. No query."""
    return Banner(
        title=gettext("The model of the settings does not answer."),
        text=f"{advice(health.last_error_kind)} "
        + gettext(
            "Change LLM_BASE_URL, LLM_API_KEY or LLM_MODEL where they are set (.env), and start again."
        ),
    )
