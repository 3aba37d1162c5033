"""`manage.py` with small numbers where the product has large ones: what takes minutes or crowds shows at once."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from django.core.management import execute_from_command_line  # noqa: E402 - the rooms need the setup

from apps.gateway import connections, heartbeat, rates, sleep  # noqa: E402

PERSON_BURST = 30
WAITING_AN_ADDRESS = 4
LINES_A_PERSON = 3
GREETED_AT_ONCE = 2
GREETING_WAIT_S = 0.5
HEARTBEAT_S = 2  # so that three misses take eight seconds


def hurry() -> None:
    rates.PERSON_RATE = (PERSON_BURST, 0.05)
    connections.WAITING_AN_ADDRESS = WAITING_AN_ADDRESS
    connections.LINES_A_PERSON = LINES_A_PERSON
    connections.GREETED_AT_ONCE = GREETED_AT_ONCE
    connections.GREETING_WAIT_S = GREETING_WAIT_S
    connections.SWEEP_INTERVAL_S = 0.2
    heartbeat.DEFAULT_S = heartbeat.HIDDEN_TIMER_S = heartbeat.ANSWER_S = HEARTBEAT_S
    sleep.IDLE_S = 0.3


if __name__ == "__main__":
    hurry()
    execute_from_command_line(sys.argv)
