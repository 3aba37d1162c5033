"""Pages of finished turns, with their waterfall."""

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
from apps.turns.models import Turn

_ENDS = {
    "finished": "success", "stopped": "", "superseded": "", "taken_over": "info", "interrupted": "warning",
    "failed": "danger",
}  # fmt: skip


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    workspace_path = "conversation__workspace_id"
    list_display = ("conversation_link", "end_label", "endpoint", "ttft", "tokens", "created_at")
    list_filter = ("end", "conversation__site", "endpoint", "created_at")
    list_select_related = ("conversation__customer",)
    search_fields = ("turn", "conversation__id")
    ordering = ("-created_at",)
    change_form_outer_before_template = "admin/waterfall.html"
    fields = (("conversation_link", "end"), ("endpoint", "ttft"), ("tokens", "created_at"))
    readonly_fields = tuple(name for row in fields for name in row)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> TemplateResponse:
        turn: Turn = context["original"]
        context |= {"bars": _bars(turn.stages), "marks": sorted(turn.marks.items())}
        response: TemplateResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    @display(description=_("Conversation"))
    def conversation_link(self, turn: Turn) -> str:
        address = reverse("admin:conversations_conversation_change", args=(turn.conversation_id,))
        return format_html('<a class="cs-link" href="{}">{}</a>', address, turn.conversation.customer)

    @display(description=_("End"), label=_ENDS)
    def end_label(self, turn: Turn) -> tuple[str, str]:
        return turn.end, turn.end.replace("_", " ")

    @display(description=_("First token"), ordering="ttft_ms")
    def ttft(self, turn: Turn) -> str:
        return "–" if turn.ttft_ms is None else f"{turn.ttft_ms:,.0f} ms"

    @display(description=_("Tokens: prompt, cached, answer"))
    def tokens(self, turn: Turn) -> str:
        counts = (turn.prompt_tokens, turn.cached_tokens, turn.completion_tokens)
        return " · ".join("–" if count is None else f"{count:,}" for count in counts)


def _bars(stages: list[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """Stages (name, start_ms, ms) with their place on the bar, in hundredths of the whole turn."""
    end_ms = max((start_ms + ms for _name, start_ms, ms in stages), default=0) or 1
    return [
        {"name": name, "ms": ms, "left": 100 * start_ms / end_ms, "width": max(0.4, 100 * ms / end_ms)}
        for name, start_ms, ms in stages
    ]
