"""The numbers and warnings of the admin's entry page."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from apps.accounts.models import Agent, Site
from apps.accounts.staff import is_superuser, staff_workspace
from apps.conversations.models import Conversation
from apps.llm.advice import Banner, banners, settings_banner
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.records import ailing_default
from apps.llm.spend import today
from apps.wire.protocol import OwnerKind, Status

LATEST: Final = 8


def fill(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds what the entry page shows, of everything for superusers and of the own workspace otherwise."""
    scope = {} if is_superuser(request) else {"workspace": staff_workspace(request)}
    context["title"] = gettext("Overview")
    context["demo"] = settings.DEMO
    context["figures"] = _figures(scope)
    context["warnings"] = _warnings(scope)
    begun = Conversation.objects.filter(**scope, last_seq__gt=0).select_related("customer")
    context["latest"] = begun.order_by("-last_at")[:LATEST]
    return context


def _warnings(scope: dict[str, Any]) -> list[Banner]:
    default = ailing_default(Site.objects.filter(**scope))
    own = ModelEndpoint.ailing().filter(**{f"site__{name}": to for name, to in scope.items()})
    return [*([settings_banner(default)] if default else []), *banners(own)]


def _figures(scope: dict[str, Any]) -> list[dict[str, Any]]:
    open_rows = Conversation.objects.filter(**scope, status=Status.OPEN, last_seq__gt=0)
    listed = reverse("admin:conversations_conversation_changelist")
    return [
        {
            "label": gettext("Open conversations"),
            "value": open_rows.count(),
            "link": f"{listed}?status__exact=open",
        },
        {
            "label": gettext("Waiting for a person"),
            "value": open_rows.filter(owner_kind=OwnerKind.QUEUE).count(),
            "link": f"{listed}?status__exact=open&owner_kind__exact=queue",
        },
        {
            "label": gettext("Active agents"),
            "value": Agent.objects.filter(**scope, active=True, user__is_active=True).count(),
            "link": f"{reverse('admin:accounts_agent_changelist')}?active__exact=1",
        },
        {
            "label": gettext("Spent on models today (UTC)"),
            "value": f"{_spent_today(scope):.2f}",
            "link": reverse("admin:llm_dailyspend_changelist"),
        },
    ]


def _spent_today(scope: dict[str, Any]) -> Decimal:
    rows = DailySpend.objects.filter(day=today(), **{f"site__{name}": to for name, to in scope.items()})
    spent: Decimal | None = rows.aggregate(total=Sum("cost"))["total"]
    return spent or Decimal(0)
