"""Pages of finished turns: what each took and how fast the sites answer."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps.accounts.staff import ReadOnlyAdmin
from apps.insights.latency import WINDOW_HOURS, SiteLatency, latency
from apps.insights.quantiles import Quantiles
from apps.insights.words import mark_in_words, stage_in_words
from apps.turns.models import Turn

_ENDS = {
    "finished": "success", "stopped": "", "superseded": "", "taken_over": "info", "interrupted": "warning",
    "failed": "danger",
}  # fmt: skip


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    workspace_path = "conversation__workspace_id"
    list_display = (
        "conversation_link",
        "end_label",
        "endpoint",
        "painted",
        "ttft",
        "added",
        "tokens",
        "created_at",
    )
    list_filter = ("end", "conversation__site", "endpoint", "created_at")
    list_select_related = ("conversation__customer",)
    search_fields = ("turn", "conversation__id")
    ordering = ("-created_at",)
    change_form_outer_before_template = "admin/waterfall.html"
    list_before_template = "admin/turn_figures.html"
    fields = (
        ("conversation_link", "end"),
        ("endpoint", "tokens"),
        ("painted", "added"),
        ("ttft", "created_at"),
    )
    readonly_fields = tuple(name for row in fields for name in row)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> TemplateResponse:
        turn: Turn = context["original"]
        marks = [mark_in_words(name, value) for name, value in sorted(turn.marks.items())]
        context |= {"bars": _bars(turn), "marks": marks}
        response: TemplateResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Adds how fast the sites of the asker have answered. One query."""
        figures = latency(self.get_queryset(request))
        context = {"figures": [(one, _columns(one)) for one in figures], "hours": WINDOW_HOURS}
        response: TemplateResponse = super().changelist_view(request, {**(extra_context or {}), **context})
        return response

    @display(description=_("Conversation"))
    def conversation_link(self, turn: Turn) -> str:
        address = reverse("admin:conversations_conversation_change", args=(turn.conversation_id,))
        return format_html('<a class="cs-link" href="{}">{}</a>', address, turn.conversation.customer)

    @display(description=_("End"), label=_ENDS)
    def end_label(self, turn: Turn) -> tuple[str, str]:
        return turn.end, turn.get_end_display()

    @display(description=_("What the customer saw"), ordering="painted_ms")
    def painted(self, turn: Turn) -> str:
        return _ms(turn.painted_ms)

    @display(description=_("First token"), ordering="ttft_ms")
    def ttft(self, turn: Turn) -> str:
        return _ms(turn.ttft_ms)

    @display(description=_("What we added"), ordering="added_ms")
    def added(self, turn: Turn) -> str:
        return _ms(turn.added_ms, 1)

    @display(description=_("Tokens: prompt, cached, answer"))
    def tokens(self, turn: Turn) -> str:
        counts = (turn.prompt_tokens, turn.cached_tokens, turn.completion_tokens)
        return " · ".join("–" if count is None else f"{count:,}" for count in counts)


def _ms(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f} ms"


def _columns(one: SiteLatency) -> list[Quantiles | None]:
    return [one.painted, one.ttft, one.added, one.inter_token]


def _bars(turn: Turn) -> list[dict[str, Any]]:
    """The stages with their place on the bar, in hundredths of the whole turn. One that was not needed has no width."""
    bars = turn.bars()
    end_ms = max((bar.end_ms for bar in bars), default=0) or 1
    return [
        {
            "name": stage_in_words(bar.name),
            "ms": bar.ms,
            "left": 100 * bar.start_ms / end_ms,
            "width": max(0.4, 100 * bar.ms / end_ms) if bar.ms else 0,
        }
        for bar in bars
    ]
