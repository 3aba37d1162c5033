"""Two workspaces with a row of everything the admin shows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from apps.accounts.agents import create_agent
from apps.accounts.models import Agent, Site, Team, Workspace
from apps.conversations.models import Conversation, Message, OutboxItem
from apps.customers.models import Customer, ProfileSource
from apps.knowledge.models import Article
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.spend import today
from apps.rulebook.models import Rule
from apps.turns.models import Turn

PASSWORD = "a-long-test-passphrase"
SHOP_KEY = "sk-shop-never-show"
MODEL_KEY = "sk-model-never-show"
SPENT = Decimal("1.25")


@dataclass(frozen=True, slots=True)
class Corner:
    """One workspace and its rows."""

    workspace: Workspace
    site: Site
    team: Team
    agent: Agent
    admin: Agent
    customer: Customer
    source: ProfileSource
    conversation: Conversation
    message: Message
    turn: Turn
    article: Article
    rule: Rule
    endpoint: ModelEndpoint
    spend: DailySpend

    def rows(self) -> list[object]:
        return [
            self.workspace, self.site, self.team, self.agent, self.customer, self.source, self.conversation,
            self.message, self.turn, self.article, self.rule, self.endpoint, self.spend,
        ]  # fmt: skip


def corner(name: str) -> Corner:
    workspace = Workspace.objects.create(name=name)
    site = Site.objects.create(workspace=workspace, name=f"{name} shop")
    team = Team.objects.create(workspace=workspace, name=f"{name} team")
    agent = create_agent(
        workspace=workspace, username=f"{name}-agent", password=PASSWORD, name=f"{name} kim", teams=[team]
    )
    admin = create_agent(
        workspace=workspace,
        username=f"{name}-admin",
        password=PASSWORD,
        name=f"{name} boss",
        role=Agent.Role.ADMIN,
    )
    customer = Customer.objects.create(site=site, external_id=f"{name}-mia", name=f"{name} <b>Mia</b>")
    source = ProfileSource.objects.create(site=site, base_url=f"https://{name}.example", api_key=SHOP_KEY)
    conversation = Conversation.objects.create(
        workspace=workspace, site=site, customer=customer, last_seq=1, last_line=f"{name} asks"
    )
    message = Message.objects.create(
        conversation=conversation, place=1, author="customer", author_name=customer.name,
        text=f"{name} <script>alert(1)</script>", created_at=timezone.now(),
    )  # fmt: skip
    turn = Turn.objects.create(
        turn=f"{name}-turn", part=0, conversation=conversation, end="finished",
        stages=[["receive", 0.0, 1.5], ["model", 1.5, 200.25]], marks={"profile": "warm"}, ttft_ms=120.0,
    )  # fmt: skip
    article = Article.objects.create(
        site=site, slug=f"{name}-returns", title=f"{name} returns", body="Thirty days."
    )
    rule = Rule.objects.create(site=site, name=f"{name} rule", condition="true", team=team, handoff=True)
    endpoint = ModelEndpoint.objects.create(
        site=site, name=f"{name} model", base_url="https://api.example.com/v1", model="m", api_key=MODEL_KEY,
        last_error_kind="auth", last_error_at=timezone.now(),
    )  # fmt: skip
    spend = DailySpend.objects.create(site=site, day=today(), cost=SPENT)
    return Corner(
        workspace, site, team, agent, admin, customer, source, conversation, message, turn, article, rule, endpoint,
        spend,
    )  # fmt: skip


def outbox_item() -> OutboxItem:
    return OutboxItem.objects.create(
        kind="mail", due_at=timezone.now(), created_at=timezone.now(), attempts=3, failure="refused"
    )


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
