"""Mails an agent's reply to a customer who left an address and is not there to read it."""

from __future__ import annotations

import smtplib
import time
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from apps.conversations.markup import to_html
from apps.conversations.models import Message, OutboxItem
from apps.conversations.outbox import Undeliverable
from apps.stores.redis import Unreachable, connect_blocking
from apps.turns.between.buffer import interest_key
from apps.turns.sentences import REPLY_FOOTER, REPLY_SUBJECT, sentence
from apps.wire.protocol import MessageState
from apps.wire.publish import Audience


def mail_reply(item: OutboxItem) -> None:
    """Sends the message, as text and as HTML, unless the customer has the conversation open. Raises `Undeliverable`.

    The outbox id is the Message-ID, so that a repeated delivery shows once.
    """
    message = Message.objects.select_related("conversation__site").filter(pk=item.payload["message"]).first()
    if message is None or message.state == MessageState.REMOVED or _reads_along(message.conversation_id):
        return
    conversation = message.conversation
    site = {"site": conversation.site.name}
    footer = sentence(REPLY_FOOTER, conversation.locale).format(**site)
    mail = EmailMultiAlternatives(
        subject=sentence(REPLY_SUBJECT, conversation.locale).format(**site),
        body=f"{message.text}\n\n{message.author_name}\n{footer}",
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[conversation.contact_email],
        headers={"Message-ID": f"<{item.pk}@chatsvc>"},
    )
    shown = {
        "text": to_html(message.text),
        "message": message,
        "locale": conversation.locale,
        "footer": footer,
    }
    mail.attach_alternative(render_to_string("mail/reply.html", shown), "text/html")
    try:
        mail.send()
    except (smtplib.SMTPException, OSError) as error:
        raise Undeliverable(str(error)) from error


def _reads_along(conversation: str) -> bool:
    try:
        with connect_blocking() as redis:
            found: Any = redis.hgetall(interest_key(conversation))
    except Unreachable as error:
        raise Undeliverable("whether the customer is there is unknown without Redis") from error
    prefix = f"{Audience.CUSTOMERS.value}:".encode()
    return any(field.startswith(prefix) and float(until) > time.time() for field, until in found.items())
