"""What one web process holds, built by its owner and handed to whoever serves a socket or a turn."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from apps.accounts.resident import SiteResident
from apps.conversations.log import Log
from apps.customers.facts import FactSources
from apps.inbox.presence import Presence
from apps.knowledge.resident import KnowledgeResident
from apps.llm.line import Line
from apps.rulebook.resident import RuleResident
from apps.turns.between.buffer import StreamBuffer
from apps.turns.between.switchboard import Switchboard
from apps.turns.kept.answers import Answers
from apps.turns.kept.contexts import Contexts
from apps.turns.ledger import Ledger
from apps.turns.spawn import Spawn


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything is open and loaded. Nothing here may be replaced while the process lives."""

    process: str
    spawn: Spawn
    redis: Redis
    log: Log
    buffer: StreamBuffer
    switchboard: Switchboard
    presence: Presence
    sites: SiteResident
    rules: RuleResident
    knowledge: KnowledgeResident
    facts: FactSources
    line: Line
    contexts: Contexts
    answers: Answers
    ledger: Ledger
