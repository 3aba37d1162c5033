"""Pages to read what was said, and to look after the outbox. Nothing here writes a conversation."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps.accounts.staff import ReadOnlyAdmin, is_superuser
from apps.conversations.markup import to_html, to_text
from apps.conversations.models import Conversation, Message, OutboxItem
from apps.wire.protocol import Author

TRANSCRIPT_LIMIT: Final = 500


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    workspace_path = "workspace_id"
    list_display = ("customer", "line", "status_label", "owner_label", "site", "locale", "last_at")
    list_filter = ("site", "status", "owner_kind", "team", "locale", "last_at")
    list_select_related = ("customer", "site", "owner_agent")
    search_fields = ("id", "customer__name", "customer__email", "last_line")
    search_help_text = _("Customer, address, last line or number. Words inside: see Messages.")
    ordering = ("-last_at",)
    change_form_outer_before_template = "admin/transcript.html"
    fields = (
        ("id", "site"),
        ("customer", "locale"),
        ("status", "owner_kind"),
        ("owner_agent", "team"),
        ("waiting_since", "contact_email"),
        ("created_at", "last_at"),
    )
    readonly_fields = tuple(name for row in fields for name in row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows: QuerySet[Conversation] = super().get_queryset(request)
        return rows.filter(last_seq__gt=0)

    @display(description=_("Last line"))
    def line(self, conversation: Conversation) -> str:
        return Truncator(conversation.last_words).chars(80) or "–"

    @display(description=_("Status"), label={"open": "success", "resolved": ""})
    def status_label(self, conversation: Conversation) -> tuple[str, str]:
        return conversation.status, conversation.get_status_display()

    @display(description=_("Owner"), label={"assistant": "info", "queue": "warning", "agent": "success"})
    def owner_label(self, conversation: Conversation) -> tuple[str, str]:
        agent = conversation.owner_agent
        return conversation.owner_kind, agent.name if agent else conversation.get_owner_kind_display()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> TemplateResponse:
        """Adds the newest messages, oldest of them first. One query."""
        newest = list(context["original"].messages.order_by("-place")[: TRANSCRIPT_LIMIT + 1])
        context["transcript"] = [(message, _shown(message)) for message in newest[TRANSCRIPT_LIMIT - 1 :: -1]]
        context["transcript_cut"] = len(newest) > TRANSCRIPT_LIMIT
        response: TemplateResponse = super().render_change_form(request, context, *args, **kwargs)
        return response


def _shown(message: Message) -> SafeString | None:
    """As the customer sees it; a customer's own words are only text."""
    return None if message.author == Author.CUSTOMER else to_html(message.text)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    workspace_path = "conversation__workspace_id"
    list_display = ("words", "author_label", "state", "conversation_link", "created_at")
    list_filter = ("author", "state", "conversation__site", "created_at")
    search_fields = ("text", "author_name")
    list_select_related = ("conversation__customer",)
    ordering = ("-created_at",)
    fields = ("conversation_link", "author", "author_name", "text", "state", "sources", "created_at")
    readonly_fields = fields

    @display(description=_("Text"))
    def words(self, message: Message) -> str:
        read = message.text if message.author == Author.CUSTOMER else to_text(message.text)
        return Truncator(read).chars(80) or "–"

    @display(description=_("Author"), label={"assistant": "info", "agent": "success", "customer": ""})
    def author_label(self, message: Message) -> tuple[str, str]:
        return message.author, message.author_name or message.get_author_display()

    @display(description=_("Conversation"))
    def conversation_link(self, message: Message) -> str:
        address = reverse("admin:conversations_conversation_change", args=(message.conversation_id,))
        return format_html('<a class="cs-link" href="{}">{}</a>', address, message.conversation.customer)


@admin.register(OutboxItem)
class OutboxItemAdmin(ReadOnlyAdmin):
    """Effects on the outside world. Belongs to no workspace: superusers only."""

    list_display = ("kind", "progress", "attempts", "due_at", "done_at", "failure")
    list_filter = ("kind", ("done_at", admin.EmptyFieldListFilter))
    search_fields = ("id", "kind", "failure")
    ordering = ("-created_at",)
    fields = ("id", "kind", "attempts", "due_at", "done_at", "failure", "created_at")
    readonly_fields = fields
    actions = ("retry",)  # type: ignore[assignment]  # the base has none

    @display(description=_("State"), label={"done": "success", "failed": "danger", "waiting": "warning"})
    def progress(self, item: OutboxItem) -> tuple[str, str]:
        if item.done_at:
            return "done", gettext("Done")
        return ("failed", gettext("Failed, will retry")) if item.failure else ("waiting", gettext("Waiting"))

    @admin.action(description=_("Try again now"))
    def retry(self, request: HttpRequest, items: QuerySet[OutboxItem]) -> None:
        if not is_superuser(request):
            return
        due = items.filter(done_at=None).update(due_at=timezone.now(), attempts=0)
        messages.success(request, ngettext("%d item is due now.", "%d items are due now.", due) % due)
