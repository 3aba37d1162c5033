"""Fills the database of a town: one site with a model, people with log-ins. Prints what its people need, as JSON.

`python -m tests.chaos.seed MODEL_URL CUSTOMERS AGENTS`
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
from django.test import Client  # noqa: E402

from apps.accounts.models import Agent, Site, Workspace  # noqa: E402
from apps.customers.identity import issue_visitor_token  # noqa: E402
from apps.llm.models import ModelEndpoint  # noqa: E402
from apps.stores.ids import new_id  # noqa: E402


def main() -> None:
    model_url, customers, agents = sys.argv[1:]
    workspace = Workspace.objects.create(name="Town")
    site = Site.objects.create(workspace=workspace, name="Town")
    ModelEndpoint.objects.create(site=site, name="fake", base_url=model_url, model="fake-1", api_key="key")
    people = {
        "tokens": [issue_visitor_token(site.pk)[0] for _ in range(int(customers))],
        "cookies": [make_agent(workspace, f"Agent {n}") for n in range(int(agents))],
    }
    sys.stdout.write(json.dumps(people))


def make_agent(workspace: Workspace, name: str) -> str:
    """A new agent, logged in: the cookie."""
    user = User.objects.create(username=f"{name}-{new_id()}")
    Agent.objects.create(workspace=workspace, user=user, name=name)
    browser = Client()
    browser.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


if __name__ == "__main__":
    main()
