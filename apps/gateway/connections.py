"""Everybody who is connected to this process."""

from __future__ import annotations

from apps.gateway.passes import Passes
from apps.turns.office import Office


class Connections:
    """What a connection is given when it comes."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.passes = Passes(office)
