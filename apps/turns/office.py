"""What the socket edge asks for: the state to show on arrival, and the actions of customers and agents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from apps.conversations import selectors
from apps.conversations.opening import current_conversation, empty_conversation
from apps.customers.facts import Asker
from apps.customers.identity import Identified
from apps.engine.types import Facts, Order
from apps.inbox.reach import agent_views, reach
from apps.stores.database import in_database
from apps.turns.ahead.drafts import Drafts
from apps.turns.ahead.preload import Preloader
from apps.turns.between.attendance import Attendance
from apps.turns.feed import Feed
from apps.turns.ledger import waterfall_frame
from apps.turns.models import Turn
from apps.turns.questions import StoredAsker
from apps.turns.records import last_record
from apps.turns.rescue.care import Care
from apps.turns.rescue.resync import Resync
from apps.turns.residents import Residents
from apps.turns.runtime import Runtime
from apps.turns.supervisor import Supervisor
from apps.wire import client_frames as client
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.times import milliseconds


@dataclass(frozen=True, slots=True)
class Resume:
    """What a returning client holds of its conversation."""

    conversation: str
    epoch: str
    seq: int


@dataclass(frozen=True, slots=True)
class Office:
    """Everything of one web process that a socket may use."""

    runtime: Runtime
    supervisor: Supervisor
    care: Care
    attendance: Attendance
    feed: Feed
    residents: Residents
    preloader: Preloader
    resync: Resync
    drafts: Drafts

    async def conversation_for(self, customer: str, locale: str, wanted: str | None) -> str:
        """The conversation to show: the one wanted if it is the customer's, else the current one."""
        if wanted is not None:
            try:
                return (await in_database(selectors.for_customer, wanted, customer)).id
            except selectors.NotFound:
                pass
        return await in_database(current_conversation, customer, locale)

    async def new_conversation(self, customer: str, locale: str) -> str:
        """The customer's one empty conversation, made if need be."""
        return await in_database(empty_conversation, customer, locale)

    async def welcome(
        self,
        who: Identified,
        conversation: str,
        locale: str,
        resume: Resume | None = None,
        *,
        heartbeat_s: int = wire.HEARTBEAT_S,
    ) -> server.Welcome:
        """The state of a conversation for its customer. Raises `NotFound`."""
        (snapshot, page), online = await asyncio.gather(
            in_database(_customer_state, conversation, who.customer_id, resume),
            self.runtime.presence.online(who.workspace_id),
        )
        self._look_after(snapshot)
        self.runtime.spawn(self._make_resident(snapshot), "context")
        site = self.runtime.sites.current(who.site_id)
        queued = snapshot.owner.kind is wire.OwnerKind.QUEUE and snapshot.waiting_since is not None
        position = await in_database(selectors.queue_position, snapshot) if queued else None
        return server.Welcome(
            conversation=snapshot.id,
            customer=who.customer_id,
            name=who.name,
            verified=who.verified,
            status=snapshot.status,
            owner=snapshot.owner,
            page=page,
            assistant=site is not None and site.assistant_enabled,
            availability=reach(site, online) if site is not None else wire.Availability(online=bool(online)),
            heartbeat_s=heartbeat_s,
            now=milliseconds(datetime.now(UTC)),
            live=await self.supervisor.live(snapshot),
            queue_position=position,
            contact=snapshot.contact,
        )

    async def is_resolved(self, customer: str, conversation: str) -> bool:
        """Whether the conversation is done with. One query. Raises `NotFound`."""
        snapshot = await in_database(selectors.for_customer, conversation, customer)
        return snapshot.status is wire.Status.RESOLVED

    async def customer_history(self, customer: str, asked: client.FetchHistory) -> server.History:
        """Raises `NotFound`."""
        return await self._history(
            await in_database(selectors.for_customer, asked.conversation, customer), asked
        )

    async def summaries(self, customer: str) -> server.Conversations:
        """The customer's conversations, newest first. One query."""
        return server.Conversations(items=await in_database(selectors.summaries, customer))

    async def inbox(self, agent: str, workspace: str) -> server.Inbox:
        """Everything an agent may see. Four queries, side by side; one look at Redis."""
        online = await self.runtime.presence.online(workspace)
        rows, agents = await asyncio.gather(
            in_database(selectors.inbox, workspace), in_database(agent_views, workspace, online)
        )
        me = next(
            (view for view in agents if view.id == agent), wire.AgentView(id=agent, name="", online=False)
        )
        return server.Inbox(
            me=me, rows=rows, agents=agents, heartbeat_s=wire.HEARTBEAT_S, now=milliseconds(datetime.now(UTC))
        )

    async def watching(self, workspace: str, conversation: str) -> server.Watching:
        """Raises `NotFound`. The panel holds what is known without asking the shop; see `fresh_panel`."""
        snapshot, page, last = await in_database(_agent_state, conversation, workspace)
        last = self.runtime.ledger.unstored(conversation) or last
        trace = waterfall_frame(last) if last is not None else None
        self._look_after(snapshot)
        panel, live = await asyncio.gather(
            self._panel(snapshot, needed=False), self.supervisor.live(snapshot)
        )
        state = server.Watching(row=snapshot.row, page=page, panel=panel, live=live)
        if trace is None:
            return state
        return msgspec.structs.replace(
            state,
            stages=trace.stages,
            marks=trace.marks,
            turn=trace.turn,
            part=trace.part,
            painted_ms=trace.painted_ms,
            added_ms=trace.added_ms,
        )

    async def fresh_panel(self, workspace: str, conversation: str) -> server.PanelChanged:
        """The panel with the shop asked. Raises `NotFound`."""
        snapshot = await in_database(selectors.for_workspace, conversation, workspace)
        return server.PanelChanged(conversation=conversation, panel=await self._panel(snapshot, needed=True))

    async def agent_history(self, workspace: str, asked: client.FetchHistory) -> server.History:
        """Raises `NotFound`."""
        return await self._history(
            await in_database(selectors.for_workspace, asked.conversation, workspace), asked
        )

    async def show_presence(self, workspace: str) -> None:
        """Tells the agents of this process who is there now. Two queries; one look at Redis."""
        await self.feed.show_presence(workspace, await self.runtime.presence.online(workspace))

    async def _history(self, snapshot: selectors.Snapshot, asked: client.FetchHistory) -> server.History:
        page = None
        if asked.after is not None:
            page = await in_database(selectors.catch_up, snapshot, asked.after)
        if page is None:
            page = await in_database(selectors.newest_page, snapshot, asked.before)
        live = await self.supervisor.live(snapshot) if asked.before is None else None
        return server.History(page=page, after=asked.after, before=asked.before, live=live)

    def _look_after(self, snapshot: selectors.Snapshot) -> None:
        """Somebody came: do not wait for the sweep where its process may be gone."""
        care, spawn = self.care, self.runtime.spawn
        if snapshot.turn:
            spawn(care.adopt_if_dead(snapshot.id, snapshot.turn_process), "adopt on arrival")
        elif (
            snapshot.row.last_author == wire.Author.CUSTOMER
            and snapshot.owner.kind is wire.OwnerKind.ASSISTANT
        ):
            spawn(care.answer_if_left(snapshot.id), "answer on arrival")

    async def _make_resident(self, snapshot: selectors.Snapshot) -> None:
        """While the customer reads, so that the question finds the conversation in memory."""
        await self.runtime.contexts.of(snapshot.id, snapshot.last_seq)

    async def _panel(self, snapshot: selectors.Snapshot, *, needed: bool) -> wire.Panel:
        asker: Asker = StoredAsker(snapshot.customer, snapshot.row.verified)
        facts, earlier = await asyncio.gather(
            self.runtime.facts.facts(asker, needed),
            in_database(selectors.summaries, snapshot.customer, snapshot.id),
        )
        return wire.Panel(
            customer=snapshot.customer,
            name=snapshot.customer_name,
            verified=snapshot.row.verified,
            email=facts.profile.email if facts.profile is not None else "",
            attributes=_attributes(facts),
            orders=tuple(_order(order) for order in facts.orders),
            earlier=earlier,
            facts_state=facts.state.value,
        )


def _customer_state(
    conversation: str, customer: str, resume: Resume | None
) -> tuple[selectors.Snapshot, server.Page]:
    snapshot = selectors.for_customer(conversation, customer)
    page = None
    if resume is not None and resume.conversation == snapshot.id and resume.epoch == snapshot.epoch:
        page = selectors.catch_up(snapshot, resume.seq)
    return snapshot, page if page is not None else selectors.newest_page(snapshot)


def _agent_state(conversation: str, workspace: str) -> tuple[selectors.Snapshot, server.Page, Turn | None]:
    snapshot = selectors.for_workspace(conversation, workspace)
    return snapshot, selectors.newest_page(snapshot), last_record(conversation)


def _attributes(facts: Facts) -> dict[str, str]:
    if facts.profile is None:
        return {}
    tier = {"tier": facts.profile.tier} if facts.profile.tier else {}
    return tier | {name: str(value) for name, value in facts.profile.attributes.items()}


def _order(order: Order) -> wire.OrderView:
    return wire.OrderView(
        number=order.number,
        status=order.status,
        placed_on=order.placed_on,
        items=order.items,
        total=order.total,
        carrier=order.carrier,
        tracking=order.tracking,
        eta=order.eta,
    )
