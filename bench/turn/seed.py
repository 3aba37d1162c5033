"""Fills the bench's database: one site with articles, rules, a shop and a model; prints its people's tokens."""

from __future__ import annotations

import json
import os
import sys
import time

import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

import jwt  # noqa: E402 - the models need the setup
from django.db import transaction  # noqa: E402

from apps.accounts.models import Site, Team, Workspace  # noqa: E402
from apps.customers.identity import issue_visitor_token  # noqa: E402
from apps.customers.models import ProfileSource  # noqa: E402
from apps.knowledge import demo as articles  # noqa: E402
from apps.llm.models import ModelEndpoint  # noqa: E402
from apps.rulebook import demo as rules  # noqa: E402
from bench.turn.wanted import Wanted  # noqa: E402

# About a thousand tokens that never change, as a real shop's instructions have.
INSTRUCTIONS = "\n".join(
    f"{n}. When a customer asks about topic {n}, answer in at most three sentences, name the article you used, "
    "and never promise anything that is not written there."
    for n in range(1, 28)
)


def main() -> None:
    wanted = msgspec.json.decode(sys.argv[1], type=Wanted)
    # All at once: a product that already runs must not see a site without its model.
    with transaction.atomic():
        site = make_site(wanted)
    people = {
        "identities": [known_customer(site, f"c{n}") for n in range(wanted.customers)],
        "visitors": [issue_visitor_token(site.pk)[0] for _ in range(wanted.customers)],
    }
    sys.stdout.write(json.dumps(people))


def make_site(wanted: Wanted) -> Site:
    """A site of a workspace of its own, with everything a turn can ask."""
    workspace = Workspace.objects.create(name="Lantern")
    site = Site.objects.create(
        workspace=workspace,
        name="Lantern",
        instructions=INSTRUCTIONS,
        answer_cache=wanted.answer_cache,
        reads_drafts=True,  # acted on where a client tells them
        speculation_tokens=wanted.speculation_tokens,
    )
    teams = {name: Team.objects.create(workspace=workspace, name=name) for name in ("Support", "Returns")}
    if wanted.articles:
        articles.load(site)
    rules.load(site, teams)
    ProfileSource.objects.create(site=site, base_url=wanted.shop_url, api_key=wanted.shop_key)
    ModelEndpoint.objects.create(site=site, name="bench", **msgspec.structs.asdict(wanted.model))
    return site


def known_customer(site: Site, subject: str) -> str:
    """The token by which the site vouches for a customer of its shop."""
    claims = {"iss": site.pk, "sub": subject, "name": "Mia Chen", "exp": int(time.time()) + 3_500}
    return jwt.encode(claims, site.identity_secret, algorithm="HS256")


if __name__ == "__main__":
    main()
