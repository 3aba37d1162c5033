"""Whether a human can be reached now, and the agents of a workspace as others see them."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.accounts.hours import availability
from apps.accounts.models import Agent
from apps.accounts.resident import SiteSettings
from apps.wire.protocol import AgentView, Availability
from apps.wire.times import milliseconds


def reach(site: SiteSettings, online: frozenset[str]) -> Availability:
    """Online means that an agent is there, whatever the hours say."""
    _, opens_at = availability(site.hours, site.timezone, datetime.now(UTC))
    return Availability(
        online=bool(online),
        opens_at=milliseconds(opens_at) if opens_at is not None else None,
        hours=site.hours,
        timezone=site.timezone,
    )


def agent_views(workspace: str, online: frozenset[str]) -> tuple[AgentView, ...]:
    """Active agents by name. Two queries."""
    agents = Agent.objects.filter(workspace_id=workspace, active=True, user__is_active=True)
    return tuple(
        AgentView(
            id=agent.pk,
            name=agent.name,
            online=agent.pk in online,
            teams=tuple(team.name for team in agent.teams.all()),
        )
        for agent in agents.prefetch_related("teams").order_by("name")
    )
