"""Where a site's assistant thinks: model endpoints, and what they cost a day."""

from __future__ import annotations

from decimal import Decimal
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Site
from apps.llm.errors import NEEDS_ADMIN
from apps.llm.providers import dialects
from apps.llm.spec import Api
from apps.stores.ids import new_id
from apps.stores.sealed import SealedText
from apps.stores.switch import switch


def validate_base_url(value: str) -> None:
    """An http(s) address with a host, without query or user."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise ValidationError(_("Write the address like https://api.example.com/v1."))


# What requests of either API say themselves.
RESERVED = frozenset(
    {
        "model", "messages", "stream", "stream_options", "tools", "n", "input", "instructions", "store", "background",
        "conversation", "previous_response_id", "type", "stream_id", "generate",
    }
)  # fmt: skip


def validate_extra_body(value: object) -> None:
    """A JSON object whose names do not touch what the line itself decides."""
    if not isinstance(value, dict):
        raise ValidationError(_('Write a JSON object, for example {"temperature": 0.3}.'))
    if taken := sorted(RESERVED & value.keys()):
        raise ValidationError(_("These are set by the line itself: %(names)s.") % {"names": ", ".join(taken)})


class Health(models.Model):
    """What was last heard from an endpoint. The line writes it, off the reply path; it never bumps a version."""

    last_error_kind = models.CharField(_("last failure"), max_length=32, blank=True, editable=False)
    last_error_at = models.DateTimeField(_("failed"), null=True, editable=False)
    last_ok_at = models.DateTimeField(_("answered"), null=True, editable=False)

    class Meta:
        abstract = True

    @property
    def failing(self) -> bool:
        """Whether the last thing heard from it is a failure."""
        if self.last_error_at is None:
            return False
        return self.last_ok_at is None or self.last_ok_at < self.last_error_at

    @property
    def needs_admin(self) -> bool:
        """Whether it fails in a way that only an administrator can mend."""
        return self.failing and self.last_error_kind in NEEDS_ADMIN


class SettingsEndpoint(Health):
    """The health of an endpoint of the settings, by the digest that `EndpointSpec.id` has: another key, another row."""

    id = models.CharField(primary_key=True, max_length=20, editable=False)

    class Meta:
        verbose_name = _("endpoint of the settings")
        verbose_name_plural = _("endpoints of the settings")

    def __str__(self) -> str:
        return self.id


class ModelEndpoint(Health):
    """One model behind one address. A site asks its endpoints by priority; `builtin` stands behind the last."""

    class Provider(models.TextChoices):
        CHAT_COMPLETIONS = Api.CHAT_COMPLETIONS.value, _("Chat Completions (OpenAI-compatible)")
        RESPONSES = Api.RESPONSES.value, _("Responses API over HTTP")
        RESPONSES_SOCKET = Api.RESPONSES_SOCKET.value, _("Responses API over WebSocket")

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    site = models.ForeignKey(
        Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="model_endpoints"
    )
    name = models.CharField(_("name"), max_length=60)
    provider = models.CharField(
        _("provider"), max_length=24, choices=Provider.choices, default=Provider.CHAT_COMPLETIONS
    )
    dialect = models.CharField(
        _("dialect"),
        max_length=16,
        choices=dialects.choices,
        default="auto",
        help_text=_(
            "What the server deviates in. Recognised by the address where possible; choose vLLM by hand."
        ),
    )
    base_url = models.CharField(
        _("address"),
        max_length=300,
        validators=[validate_base_url],
        help_text=_("Up to /v1, for example https://api.openai.com/v1."),
    )
    api_key = SealedText(_("API key"), blank=True)
    model = models.CharField(_("model"), max_length=120)
    http2 = models.BooleanField(
        "HTTP/2",
        default=False,
        help_text=_(
            "One connection for many answers. A stopped answer is not reset: the server goes on, and bills, to its end."
        ),
    )
    priority = models.PositiveSmallIntegerField(
        _("priority"),
        default=10,
        help_text=_("The lowest number is asked first; among equals whichever is fastest at the time."),
    )
    region = models.CharField(
        _("region"),
        max_length=40,
        blank=True,
        db_default="",
        help_text=_("Any name. A conversation prefers endpoints in the region of its last answer."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    max_concurrent = models.PositiveSmallIntegerField(
        _("answers at a time"),
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text=_(
            "Answers at a time from each web process; more wait shortly, then the next endpoint is asked."
        ),
    )
    max_output_tokens = models.PositiveIntegerField(
        _("longest answer, tokens"), default=700, validators=[MinValueValidator(16)]
    )
    price_in = models.DecimalField(
        _("price in"),
        max_digits=10,
        decimal_places=4,
        default=Decimal(0),
        validators=[MinValueValidator(0)],
        help_text=_("For a million prompt tokens."),
    )
    price_out = models.DecimalField(
        _("price out"),
        max_digits=10,
        decimal_places=4,
        default=Decimal(0),
        validators=[MinValueValidator(0)],
        help_text=_("For a million tokens of the answer."),
    )
    extra_body = models.JSONField(
        _("additional fields"),
        default=dict,
        blank=True,
        validators=[validate_extra_body],
        help_text=_('Added to every request, for example {"reasoning_effort": "low"}.'),
    )
    continue_chains = switch(
        _("send only what is new"),
        _(
            "Responses API: a question continues the last answer where the server still knows it, and sends the rest "
            "only when it does not."
        ),
        on=True,
    )
    keep_responses = switch(
        _("the provider keeps answers"),
        _(
            "Responses API over HTTP: needed to send only what is new. The provider stores prompts and answers for a "
            "time of its own (OpenAI: 30 days)."
        ),
    )
    prepare_prompts = switch(
        _("read the prompt ahead"),
        _(
            "Before a question, the model reads what the prompt will begin with: at a start, after each answer, and "
            "when the customer begins to type. Shortens the wait where the server keeps what it has read: llama.cpp, "
            "vLLM, Ollama (which then keeps the model loaded), and the Responses API over WebSocket. The whole "
            "prompt is read once more each time, and billed where prompts are, also when no question comes; at most "
            "60,000 tokens a minute, for each site and web process."
        ),
    )

    class Meta:
        verbose_name = _("model endpoint")
        verbose_name_plural = _("model endpoints")
        ordering = ["site", "priority", "id"]
        constraints = [
            models.UniqueConstraint(fields=["site", "name"], name="one_endpoint_name_a_site"),
            models.CheckConstraint(
                condition=Q(price_in__gte=0) & Q(price_out__gte=0), name="endpoint_prices_are_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.model})"

    @staticmethod
    def ailing() -> models.QuerySet[ModelEndpoint]:
        """The enabled endpoints for which `needs_admin` holds. One query."""
        return ModelEndpoint.objects.filter(
            Q(last_ok_at=None) | Q(last_ok_at__lt=F("last_error_at")),
            enabled=True, last_error_kind__in=NEEDS_ADMIN, last_error_at__isnull=False,
        ).select_related("site")  # fmt: skip


class DailySpend(models.Model):
    """What a site's answers cost on one UTC day, over all of its endpoints."""

    site = models.ForeignKey(
        Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="daily_spend"
    )
    day = models.DateField(_("day"))
    prompt_tokens = models.PositiveBigIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveBigIntegerField(_("answer tokens"), default=0)
    cost = models.DecimalField(_("cost"), max_digits=14, decimal_places=6, default=Decimal(0))

    class Meta:
        verbose_name = _("daily spend")
        verbose_name_plural = _("daily spend")
        ordering = ["-day", "site"]
        constraints = [models.UniqueConstraint(fields=["site", "day"], name="one_spend_row_a_site_and_day")]

    def __str__(self) -> str:
        return f"{self.site} {self.day}: {self.cost:.2f}"
