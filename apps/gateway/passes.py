"""Whether those who are connected may still be: what let them in is looked at twice a second, in every process.

No announcement is needed, so none can be lost: what is revoked anywhere ends here at the next look.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Hashable
from typing import Protocol, TypeAlias

from django.db import DatabaseError

from apps.accounts.agents import AgentIdentity
from apps.accounts.sessions import Standings, standings
from apps.customers.identity import Identified, Vouched
from apps.stores.database import in_database
from apps.turns.office import Office

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 0.5

# What let a customer in: a word for who it is, and the page's origin.
_Ground: TypeAlias = tuple[Vouched, str]


class AgentHolder(Protocol):
    """An agent's connection."""

    agent: AgentIdentity
    session: str

    async def check_session(self) -> None:
        """Takes over what changed of the agent, or hangs up on whom the session names no longer."""


class CustomerHolder(Protocol):
    """A customer's connection."""

    who: Identified
    origin: str  # of the page, or of the one around our frame, that the site's list let in; "" where there is none

    def revoked(self) -> None:
        """Hangs up: what let the customer in does so no longer."""


class Passes:
    """The credentials that are in use at this process."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._agents: dict[AgentHolder, Hashable] = {}  # how each stood when it was last looked at
        self._customers: dict[_Ground, set[CustomerHolder]] = defaultdict(set)
        self._rosters: dict[str, Hashable] = {}
        self._hurry = asyncio.Event()
        self._blind = False  # whether the last look failed
        office.residents.on_moved(self._hurry.set)

    def hold_agent(self, holder: AgentHolder) -> None:
        """Looks after the connection from now on, until it is dropped."""
        self._agents[holder] = None

    def hold_customer(self, holder: CustomerHolder) -> None:
        """The same for a customer's."""
        self._customers[_ground(holder)].add(holder)

    def drop_agent(self, holder: AgentHolder) -> None:
        """The connection is gone."""
        self._agents.pop(holder, None)

    def drop_customer(self, holder: CustomerHolder) -> None:
        """The same for a customer's."""
        ground = _ground(holder)
        holders = self._customers[ground]
        holders.discard(holder)
        if not holders:
            del self._customers[ground]

    async def watch(self) -> None:
        """Looks for ever. A database that does not answer leaves everybody connected until it does."""
        while True:
            try:
                async with asyncio.timeout(LOOK_INTERVAL_S):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()
            self._look_at_customers()
            try:
                await self._look_at_agents()
            except DatabaseError as error:
                if not self._blind:
                    logger.warning("the sessions of the agents cannot be read: %s", error)
                self._blind = True
            else:
                self._blind = False

    def _look_at_customers(self) -> None:
        for ground in [ground for ground in self._customers if self._is_void(*ground)]:
            for holder in tuple(self._customers[ground]):
                holder.revoked()

    def _is_void(self, vouched: Vouched, origin: str) -> bool:
        sites = self._office.runtime.sites
        site = sites.current(vouched.site_id)
        if site is None:
            return not self._office.residents.knows(vouched.site_id)
        # Whoever came just after a change was judged by what this process has not heard of yet.
        if sites.loaded_version(vouched.site_id) < vouched.settings_version:
            return False
        rotated = bool(vouched.secret_print) and vouched.secret_print != site.secret_print
        return rotated or (bool(origin) and origin not in site.allowed_origins)

    async def _look_at_agents(self) -> None:
        """Two queries; two or three more for each agent of whom something changed."""
        holders = tuple(self._agents)
        if not holders:
            self._rosters.clear()
            return
        workspaces = {holder.agent.workspace_id for holder in holders}
        stand = await in_database(standings, {holder.session for holder in holders}, workspaces)
        changed = [
            (holder, found)
            for holder, known in self._agents.items()
            # Nothing is known of one who came since the last look: what let them in may have ended meanwhile.
            if known != (found := _standing(holder, stand))
        ]
        await asyncio.gather(*(self._look_at_agent(holder, found) for holder, found in changed))
        for workspace in workspaces:
            await self._look_at_roster(workspace, frozenset(stand.rosters.get(workspace, {}).items()))

    async def _look_at_agent(self, holder: AgentHolder, found: Hashable) -> None:
        try:
            await holder.check_session()
        except DatabaseError:
            logger.exception("an agent's session could not be read")  # looked at again next time
        else:
            if holder in self._agents:
                self._agents[holder] = found

    async def _look_at_roster(self, workspace: str, roster: Hashable) -> None:
        """Names, teams and who works here: the workspace's agents are told of a change."""
        known = self._rosters.get(workspace)
        if known not in (None, roster):
            await self._office.show_presence(workspace)
        self._rosters[workspace] = roster


def _ground(holder: CustomerHolder) -> _Ground:
    return holder.who.vouched, holder.origin


def _standing(holder: AgentHolder, stand: Standings) -> Hashable:
    rows = stand.rosters.get(holder.agent.workspace_id, {}).get(holder.agent.id)
    return stand.sessions.get(holder.session), rows
