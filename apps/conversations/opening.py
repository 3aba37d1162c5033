"""Which conversation a customer's socket shows, and starting a new one."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from apps.conversations.models import Conversation
from apps.customers.models import Customer
from apps.wire.protocol import Status


def current_conversation(customer: str, locale: str) -> str:
    """The newest open conversation, or else an empty one, made if need be. At most six queries.

    Of two sockets that come at once, perhaps to different processes, both are shown the same one, however much later
    the second of them goes on.
    """
    newest = _newest_open(customer)
    if newest is not None:
        return newest
    with transaction.atomic():
        Customer.objects.select_for_update(no_key=True).get(pk=customer)
        return _newest_open(customer) or empty_conversation(customer, locale)


def _newest_open(customer: str) -> str | None:
    open_ones = Conversation.objects.filter(customer_id=customer, status=Status.OPEN)
    return open_ones.order_by("-last_at").values_list("pk", flat=True).first()


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
