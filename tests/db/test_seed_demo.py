"""The demo is made once and then left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from apps.accounts.models import Agent, Site, Team, Workspace
from apps.customers.models import ProfileSource
from apps.knowledge.models import Article
from apps.rulebook.models import Rule

pytestmark = pytest.mark.django_db

SHOP = {"port": 5999, "key": "demo-key"}


@pytest.fixture
def var(tmp_path: Path, settings: Any) -> Path:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, var_dir=tmp_path, bind_port=8123)
    (tmp_path / "demo-shop.json").write_text(json.dumps(SHOP), encoding="utf-8")
    return tmp_path


def test_the_demo_has_its_shop_teams_people_and_log_ins(var: Path) -> None:
    call_command("seed_demo", verbosity=0)
    site = Site.objects.get(workspace__name="Lantern", name="Lantern")
    assert site.allowed_origins == ["http://localhost:8123", "http://127.0.0.1:8123"]
    assert sorted(Team.objects.values_list("name", flat=True)) == ["Returns", "Support"]
    assert (site.profile_source.base_url, site.profile_source.api_key) == (
        "http://127.0.0.1:5999",
        "demo-key",
    )
    file = var / "demo-logins.json"
    assert file.stat().st_mode & 0o777 == 0o600
    logins = json.loads(file.read_text(encoding="utf-8"))
    assert set(logins) == {"kim", "ana", "admin"}
    assert all(Client().login(username=name, password=password) for name, password in logins.items())
    assert Agent.objects.get(user__username="kim").user.is_staff is False
    assert Rule.objects.filter(site=site, team__name="Returns").exists()
    assert {article.locale for article in Article.objects.filter(site=site)} == {"en", "zh"}
    site.full_clean()
    site.workspace.full_clean()


def test_a_second_run_changes_nothing_but_the_shops_address(var: Path) -> None:
    call_command("seed_demo", verbosity=0)
    logins = (var / "demo-logins.json").read_text(encoding="utf-8")
    written = Rule.objects.count(), Article.objects.count()
    Site.objects.update(assistant_name="Edited", allowed_origins=["https://kept.example"])
    passwords = list(User.objects.order_by("pk").values_list("password", flat=True))
    (var / "demo-shop.json").write_text(json.dumps({**SHOP, "port": 6001}), encoding="utf-8")
    call_command("seed_demo", verbosity=0)
    call_command("seed_demo", verbosity=0)
    assert (Rule.objects.count(), Article.objects.count()) == written
    counts = [model.objects.count() for model in (Workspace, Site, Team, Agent, ProfileSource, User)]
    assert counts == [1, 1, 2, 2, 1, 3]
    assert (var / "demo-logins.json").read_text(encoding="utf-8") == logins
    assert list(User.objects.order_by("pk").values_list("password", flat=True)) == passwords
    site = Site.objects.get()
    assert site.assistant_name == "Edited"
    assert site.allowed_origins == ["https://kept.example", "http://localhost:8123", "http://127.0.0.1:8123"]
    assert ProfileSource.objects.get().base_url == "http://127.0.0.1:6001"
