"""How many turns a conversation has, from those that are quiet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.conversations.models import Conversation, Message
from apps.conversations.selectors import average_turns
from apps.customers.models import Customer
from tests.support.world import World, make_world

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def talked(world: World, turns: int, quiet_for: timedelta) -> None:
    conversation = Conversation.objects.create(
        workspace=world.workspace,
        site=world.site,
        customer=Customer.objects.create(site=world.site),
        last_seq=3 * turns,
    )
    Conversation.objects.filter(pk=conversation.pk).update(last_at=NOW - quiet_for)
    for turn in range(turns):
        for place, author in ((3 * turn + 1, "customer"), (3 * turn + 2, "assistant")):
            Message.objects.create(
                conversation=conversation,
                place=place,
                author=author,
                text="Hello",
                sender=f"{author}:{conversation.pk}" if author == "customer" else "",
                client_id=str(place),
                turn=f"{conversation.pk[:15]}{turn}" if author == "assistant" else "",
                created_at=NOW - quiet_for,
            )


def test_conversations_that_are_quiet_and_hold_something_count() -> None:
    world = make_world()
    assert average_turns(NOW) is None
    for turns in (2, 5):
        talked(world, turns, timedelta(hours=2))
    talked(world, 9, timedelta(minutes=5))
    talked(world, 0, timedelta(hours=2))
    assert average_turns(NOW - timedelta(hours=1)) == 3.5
