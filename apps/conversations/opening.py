"""Which conversation a customer's socket shows, and starting a new one."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from apps.conversations.models import Conversation
from apps.customers.models import Customer
from apps.wire.protocol import Status


def current_conversation(customer: str, locale: str) -> str:
    """The newest open conversation, or else an empty one, made if need be. At most four queries."""
    newest = (
        Conversation.objects.filter(customer_id=customer, status=Status.OPEN).order_by("-last_at").first()
    )
    return newest.pk if newest is not None else empty_conversation(customer, locale)


def empty_conversation(customer: str, locale: str) -> str:
    """The customer's one empty conversation. Safe against two tabs asking at once."""
    found = Conversation.objects.filter(customer_id=customer, last_seq=0).first()
    if found is not None:
        return found.pk
    site = Customer.objects.select_related("site").get(pk=customer).site
    try:
        with transaction.atomic():
            made = Conversation.objects.create(
                workspace_id=site.workspace_id, site=site, customer_id=customer, locale=locale
            )
    except IntegrityError:
        # Another tab was faster, and may have spoken in it since.
        return empty_conversation(customer, locale)
    return made.pk
