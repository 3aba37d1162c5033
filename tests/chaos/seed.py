"""Fills the database of a town: for each crowd a site with a model, and people with log-ins. Prints what its people
need, as JSON, a line a crowd.

`python -m tests.chaos.seed MODEL_URL CROWDS CUSTOMERS AGENTS`
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402 - the models need the setup
from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client  # noqa: E402

from apps.accounts.models import Agent, Site, Workspace  # noqa: E402
from apps.customers.identity import issue_visitor_token  # noqa: E402
from apps.llm.models import ModelEndpoint  # noqa: E402
from apps.stores.ids import new_id  # noqa: E402


def main() -> None:
    model_url, crowds, customers, agents = sys.argv[1:]
    for _ in range(int(crowds)):
        with transaction.atomic():
            crowd = _crowd(model_url, int(customers), int(agents))
        sys.stdout.write(json.dumps(crowd) + "\n")


def _crowd(model_url: str, customers: int, agents: int) -> dict[str, list[str]]:
    workspace = Workspace.objects.create(name="Town")
    site = Site.objects.create(workspace=workspace, name="Town")
    ModelEndpoint.objects.create(site=site, name="fake", base_url=model_url, model="fake-1", api_key="key")
    return {
        "tokens": [issue_visitor_token(site.pk)[0] for _ in range(customers)],
        "cookies": [make_agent(workspace, f"Agent {n}") for n in range(agents)],
    }


def make_agent(workspace: Workspace, name: str) -> str:
    """A new agent, logged in: the cookie."""
    user = User.objects.create(username=f"{name}-{new_id()}")
    Agent.objects.create(workspace=workspace, user=user, name=name)
    browser = Client()
    browser.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


if __name__ == "__main__":
    main()
