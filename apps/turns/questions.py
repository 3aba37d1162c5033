"""The question a conversation is waiting for an answer to, read back from the database."""

from __future__ import annotations

from dataclasses import dataclass

from apps.conversations.models import Conversation, Message
from apps.customers.facts import Asker


@dataclass(frozen=True, slots=True)
class StoredAsker:
    """The asker as the database knows them, for turns that no socket asked for."""

    customer_id: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Question:
    conversation: str
    site: str
    asker: Asker
    locale: str
    text: str
    place: int


def open_question(conversation: str) -> Question | None:
    """The newest message of the conversation that is not the assistant's, if a customer wrote it. Two queries.

    A live turn's own kept parts do not count as an answer: a dead process leaves the question open.
    """
    row = Conversation.objects.select_related("customer").filter(pk=conversation).first()
    if row is None:
        return None
    newest = Message.objects.filter(conversation=row).order_by("-place").exclude(state="interrupted").first()
    if newest is None or newest.author != "customer":
        return None
    return Question(
        conversation=conversation,
        site=row.site_id,
        asker=StoredAsker(row.customer_id, row.customer.verified),
        locale=row.locale,
        text=newest.text,
        place=newest.place,
    )
