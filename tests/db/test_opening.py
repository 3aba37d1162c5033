"""Which conversation a customer is shown when several of their sockets come at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import Site
from apps.conversations.models import Conversation
from apps.conversations.opening import current_conversation
from apps.customers.models import Customer

pytestmark = pytest.mark.django_db


def test_who_was_held_up_while_opening_is_shown_what_was_opened_and_spoken_in_meanwhile(site: Site) -> None:
    customer = Customer.objects.create(site=site)
    spoken_in: list[Conversation] = []

    def held_up_after_the_first_look(execute: Any, *query: Any) -> Any:
        found = execute(*query)
        if not spoken_in:
            spoken_in.append(Conversation(site=site, workspace=site.workspace, customer=customer, last_seq=2))
            spoken_in[0].save()
        return found

    with connection.execute_wrapper(held_up_after_the_first_look):
        shown = current_conversation(customer.pk, "en")
    assert shown == spoken_in[0].pk
    assert Conversation.objects.filter(customer=customer).count() == 1
