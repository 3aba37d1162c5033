"""Agents: who a logged-in user is, and the changes that must keep user and agent in step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.db import transaction
from django.db.models import QuerySet

from apps.accounts.models import Agent, Team, Workspace


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """The agent behind a session, as sockets and REST need it."""

    id: str
    name: str
    workspace_id: str


def agent_for_user(user_id: int | None) -> AgentIdentity | None:
    """The agent a user works as; None when there is none or either is deactivated. One query."""
    agent = _working(user_id).first()
    return AgentIdentity(agent.pk, agent.name, agent.workspace_id) if agent is not None else None


def admin_workspace(user_id: int | None) -> str | None:
    """The workspace this user may administer as an active admin agent. One query."""
    admins = _working(user_id).filter(role=Agent.Role.ADMIN)
    return admins.values_list("workspace_id", flat=True).first()


def create_login(username: str, password: str) -> User:
    """A user who can log in and nothing else. Raises `ValidationError` for a weak password."""
    user = User(username=username)
    validate_password(password, user)
    user.set_password(password)
    user.save()
    return user


@transaction.atomic
def create_agent(
    *,
    workspace: Workspace,
    username: str,
    password: str,
    name: str,
    role: str = Agent.Role.AGENT,
    teams: Iterable[Team] = (),
) -> Agent:
    """A user who can log in, and the agent they work as. Raises `ValidationError` for a weak password."""
    agent = Agent(workspace=workspace, user=create_login(username, password), name=name, role=role)
    save_agent(agent)
    agent.teams.set(teams)
    return agent


@transaction.atomic
def save_agent(agent: Agent) -> None:
    """Saves, and opens the admin to the user exactly while the agent is an active admin (superusers stay)."""
    agent.save()
    user = agent.user
    staff = user.is_superuser or (agent.active and agent.role == Agent.Role.ADMIN)
    if user.is_staff != staff:
        user.is_staff = staff
        user.save(update_fields=["is_staff"])


def _working(user_id: int | None) -> QuerySet[Agent]:
    """The user's agent while both are active. Strangers (`None`) have none."""
    if user_id is None:
        return Agent.objects.none()
    return Agent.objects.filter(user_id=user_id, active=True, user__is_active=True)
