"""What was said: conversations, their append-only events, and the messages as they stand now.

Only `log.py` writes events, messages and the counters of a conversation.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Agent, Site, Team, Workspace
from apps.conversations.markup import to_text
from apps.customers.models import Customer
from apps.stores.ids import new_id
from apps.wire.protocol import Author, MessageState, OwnerKind, Status

# Who owns what a person is to look after.
WITH_PEOPLE = (OwnerKind.QUEUE.value, OwnerKind.AGENT.value)


class Conversation(models.Model):
    """A customer's conversation with a site: who owns it, how it stands, and its one live turn."""

    STATUSES = ((Status.OPEN.value, _("Open")), (Status.RESOLVED.value, _("Resolved")))
    OWNERS = (
        (OwnerKind.ASSISTANT.value, _("Assistant")),
        (OwnerKind.QUEUE.value, _("Queue")),
        (OwnerKind.AGENT.value, _("Agent")),
    )

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    workspace = models.ForeignKey(Workspace, verbose_name=_("workspace"), on_delete=models.CASCADE)
    site = models.ForeignKey(Site, verbose_name=_("site"), on_delete=models.CASCADE)
    customer = models.ForeignKey(
        Customer, verbose_name=_("customer"), on_delete=models.CASCADE, related_name="conversations"
    )
    locale = models.CharField(_("language"), max_length=16, default="en")
    # Names this numbering: a client whose epoch differs reloads instead of resuming.
    epoch = models.CharField(max_length=20, default=new_id, editable=False)
    last_seq = models.PositiveBigIntegerField(default=0)
    status = models.CharField(_("status"), max_length=8, choices=STATUSES, default=Status.OPEN.value)
    owner_kind = models.CharField(_("owner"), max_length=9, choices=OWNERS, default=OwnerKind.ASSISTANT.value)
    owner_agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="conversations",
    )
    owner_version = models.PositiveBigIntegerField(default=0)
    owner_reason = models.CharField(max_length=16, blank=True)
    team = models.ForeignKey(Team, verbose_name=_("team"), on_delete=models.SET_NULL, null=True, blank=True)
    waiting_since = models.DateTimeField(_("waiting since"), null=True, blank=True)
    contact_email = models.EmailField(_("address left"), blank=True)
    last_line = models.CharField(_("last line"), max_length=160, blank=True)
    last_author = models.CharField(max_length=9, blank=True)
    last_at = models.DateTimeField(_("last message"), auto_now_add=True)
    created_at = models.DateTimeField(_("begun"), auto_now_add=True)
    # The one live turn. The fence is minted here and only grows; a write with an older fence is refused.
    turn = models.CharField(max_length=20, blank=True)
    turn_part = models.PositiveIntegerField(default=0)
    turn_place = models.PositiveBigIntegerField(default=0)
    turn_question = models.PositiveBigIntegerField(default=0)
    turn_process = models.CharField(max_length=20, blank=True)
    fence = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        indexes = [
            models.Index(fields=["workspace", "status", "-last_at"], name="inbox_order"),
            models.Index(fields=["customer", "-last_at"], name="customers_conversations"),
            models.Index(fields=["turn"], condition=~Q(turn=""), name="live_turns"),
            models.Index(
                fields=["last_at"],
                condition=Q(turn="", owner_kind="assistant", status="open"),
                name="perhaps_unanswered",
            ),
            models.Index(
                fields=["workspace", "waiting_since"],
                condition=Q(status="open", owner_kind__in=WITH_PEOPLE),
                name="with_people",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["customer"], condition=Q(last_seq=0), name="one_empty_conversation_a_customer"
            ),
            models.CheckConstraint(
                condition=Q(owner_kind="agent") | Q(owner_agent__isnull=True), name="only_agents_own_by_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.customer} · {self.last_words[:40]}"

    @property
    def last_words(self) -> str:
        """The last line as it is read: an assistant's without its Markdown."""
        return to_text(self.last_line) if self.last_author == Author.ASSISTANT else self.last_line


class Message(models.Model):
    """A message as it stands now. `place` is where it is shown: its own number, or its turn's."""

    AUTHORS = (
        (Author.CUSTOMER.value, _("Customer")),
        (Author.ASSISTANT.value, _("Assistant")),
        (Author.AGENT.value, _("Agent")),
    )
    STATES = (
        (MessageState.COMPLETE.value, _("Complete")),
        (MessageState.STOPPED.value, _("Stopped")),
        (MessageState.TAKEN_OVER.value, _("Taken over")),
        (MessageState.INTERRUPTED.value, _("Interrupted")),
        (MessageState.REMOVED.value, _("Removed")),
    )

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    conversation = models.ForeignKey(
        Conversation, verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="messages"
    )
    place = models.PositiveBigIntegerField()
    author = models.CharField(_("author"), max_length=9, choices=AUTHORS)
    author_name = models.CharField(_("name"), max_length=120, blank=True)
    # Who named it: "customer:<id>" or "agent:<id>"; empty for the assistant.
    sender = models.CharField(max_length=32, blank=True)
    client_id = models.CharField(max_length=64, blank=True)
    text = models.TextField(_("text"))
    state = models.CharField(_("state"), max_length=12, choices=STATES, default=MessageState.COMPLETE.value)
    sources = models.JSONField(_("sources"), default=list)
    turn = models.CharField(max_length=20, blank=True)
    part = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(_("written"))

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "place"], name="one_message_a_place"),
            models.UniqueConstraint(
                fields=["sender", "client_id"], condition=~Q(sender=""), name="one_message_a_client_id"
            ),
            models.UniqueConstraint(
                fields=["turn", "part"], condition=~Q(turn=""), name="one_message_a_turn_part"
            ),
        ]
        ordering = ["conversation", "place"]

    def __str__(self) -> str:
        return self.text[:60]


class Event(models.Model):
    """An append-only record: event `seq` of its conversation."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=16)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, null=True, related_name="events")
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="one_event_a_seq")]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class OutboxItem(models.Model):
    """An effect on the outside world, committed with its cause and delivered at least once by the worker.

    The receiver drops repeats by `id`.
    """

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    kind = models.CharField(_("kind"), max_length=32)
    payload = models.JSONField(default=dict)
    due_at = models.DateTimeField(_("due"), db_index=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    done_at = models.DateTimeField(_("done"), null=True, blank=True)
    failure = models.CharField(_("failure"), max_length=300, blank=True)
    created_at = models.DateTimeField(_("made"))

    class Meta:
        verbose_name = _("outbox item")
        verbose_name_plural = _("outbox items")

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
