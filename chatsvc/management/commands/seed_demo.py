"""Makes the demo: the workspace and shop Lantern, its people, rules and articles. Runs at every start of a demo."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import transaction

from apps.accounts.agents import create_agent
from apps.accounts.models import Site, Team, Workspace, bump
from apps.customers.models import ProfileSource
from apps.knowledge import demo as articles
from apps.rulebook import demo as rules
from chatsvc.embedded.demo_logins import keep_demo_logins
from chatsvc.embedded.demo_shop import read_demo_shop

NAME = "Lantern"
TEAMS = ("Support", "Returns")
AGENTS = (("kim", "Kim Larsen", ("Support",)), ("ana", "Ana Wu", ("Support", "Returns")))
ADMIN = "admin"
# A demo is looked at by night, too.
HOURS = ["00:00-23:59"] * 7

SITE = {
    "accent": "#2f5bea",
    "assistant_name": "Lumen",
    "greeting_en": "Hi! Ask me about your order, our lamps, boots and tents, or returns.",
    "greeting_zh": "您好！关于订单、灯具、靴子、帐篷或退货，都可以问我。",
    "suggestions_en": ["Where is my order 1042?", "Can I return worn boots?", "I'd like to talk to a person"],
    "suggestions_zh": ["我的订单1042到哪了？", "穿过的靴子可以退吗？", "我想和人工客服聊聊"],
    "instructions": (
        "Lantern sells lamps, boots and tents. Be brief and friendly; never promise a date the order does not show."
    ),
}


class Command(BaseCommand):
    help = "Creates what the demo needs and is missing. What exists keeps its edits, log-ins keep their passwords."

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            site, teams = _lantern()
            _people(site.workspace, teams)
            _shop(site)
            rules.load(site, teams)
        # Outside: embedding writes in small transactions of its own.
        articles.load(site)
        if options["verbosity"]:
            self.stdout.write(f"The demo is ready: site {site.pk}.")


def _lantern() -> tuple[Site, dict[str, Team]]:
    workspace, _ = Workspace.objects.get_or_create(name=NAME, defaults={"hours": HOURS})
    site, _ = Site.objects.get_or_create(workspace=workspace, name=NAME, defaults=SITE)
    missing = [origin for origin in _own_origins() if origin not in site.allowed_origins]
    if missing:
        site.allowed_origins = [*site.allowed_origins, *missing]
        site.save(update_fields=["allowed_origins"])
        bump(site, "settings_version")
    return site, {name: Team.objects.get_or_create(workspace=workspace, name=name)[0] for name in TEAMS}


def _own_origins() -> list[str]:
    """Where a browser on this machine may open the demo shop, whatever name it uses for the machine."""
    environment = settings.ENVIRONMENT
    hosts = ["localhost", "127.0.0.1"]
    if environment.bind_host not in ("0.0.0.0", "::", "::1", *hosts):  # noqa: S104 - compared, not bound
        hosts.append(environment.bind_host)
    return [f"http://{host}:{environment.bind_port}" for host in hosts] + list(environment.trusted_origins)


def _people(workspace: Workspace, teams: dict[str, Team]) -> None:
    made: dict[str, str] = {}
    for username, name, team_names in AGENTS:
        if not User.objects.filter(username=username).exists():
            made[username] = secrets.token_urlsafe(12)
            create_agent(
                workspace=workspace, username=username, password=made[username], name=name,
                teams=[teams[team] for team in team_names],
            )  # fmt: skip
    if not User.objects.filter(username=ADMIN).exists():
        made[ADMIN] = secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMIN, password=made[ADMIN])
    if made:
        # Before the commit: a log-in without a known password would lock the demo for good.
        keep_demo_logins(settings.ENVIRONMENT.var_dir, made)


def _shop(site: Site) -> None:
    """The demo's shop may listen elsewhere at each start."""
    shop = read_demo_shop(settings.ENVIRONMENT.var_dir)
    if shop is None:
        return
    source, _ = ProfileSource.objects.get_or_create(site=site, defaults={"base_url": shop.url})
    source.base_url, source.api_key = shop.url, shop.key
    source.save()
