"""How often a password may be guessed at the two doors, with the attempts counted in a real Redis."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from redis import Redis

from apps.stores.buckets import Bucket, give_back, take
from apps.stores.ids import new_id
from apps.stores.redis import connect_blocking

PASSWORD = "a-long-test-passphrase"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]

_hosts = count(1)


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with connect_blocking() as client:
        yield client


@pytest.fixture
def kim() -> User:
    return User.objects.create_user(f"kim-{new_id()}", password=PASSWORD, is_staff=True)


def somewhere() -> str:
    """An address in a network from which nobody has tried yet."""
    return f"2001:db8:{secrets.randbelow(2**16):x}:{next(_hosts):x}::1"


def attempt(address: str, name: str, password: str, door: str = "/login/") -> Any:
    return Client(REMOTE_ADDR=address).post(door, {"username": name, "password": password})


def test_the_sixth_guess_is_not_judged_even_when_it_is_right(kim: User) -> None:
    here = somewhere()
    assert [attempt(here, kim.username, f"guess {n}").status_code for n in range(5)] == [200] * 5
    refused = attempt(here, kim.username, PASSWORD)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "Too many attempts. Try again in 1 minute." in refused.content.decode()
    assert "sessionid" not in refused.cookies
    elsewhere = attempt(somewhere(), kim.username, PASSWORD)
    assert elsewhere["Location"] == "/dashboard/"


def test_another_address_of_the_same_network_buys_no_further_guesses(kim: User) -> None:
    network = somewhere().removesuffix("1")
    for n in range(5):
        attempt(f"{network}{n + 1:x}", kim.username, f"guess {n}")
    assert attempt(f"{network}9:ffff", kim.username, PASSWORD).status_code == 429
    assert attempt(somewhere(), kim.username, PASSWORD).status_code == 302


def test_an_ipv4_address_is_the_same_however_it_is_written(kim: User) -> None:
    host = f"{secrets.randbelow(256)}.{secrets.randbelow(256)}"
    for n in range(5):
        attempt(f"::ffff:198.18.{host}" if n % 2 else f"198.18.{host}", kim.username, "wrong")
    assert attempt(f"198.18.{host}", kim.username, PASSWORD).status_code == 429
    assert attempt(f"198.19.{host}", kim.username, PASSWORD).status_code == 302


def test_a_log_in_that_succeeds_costs_nothing(kim: User) -> None:
    here = somewhere()
    for _ in range(20):
        assert attempt(here, kim.username, PASSWORD).status_code == 302
    assert [attempt(here, kim.username, "wrong").status_code for _ in range(6)] == [200] * 5 + [429]


def test_a_name_that_nobody_has_is_slowed_down_the_same() -> None:
    here, nobody = somewhere(), f"nobody-{new_id()}"
    assert [attempt(here, nobody, "wrong").status_code for _ in range(6)] == [200] * 5 + [429]


def test_capitals_and_spaces_buy_no_further_guesses(kim: User) -> None:
    here, name = somewhere(), kim.username
    for spelt in (name, name.upper(), f" {name}", f"{name} ", name.title()):
        attempt(here, spelt, "wrong")
    assert attempt(here, name, PASSWORD).status_code == 429


def test_both_doors_count_together(kim: User) -> None:
    here = somewhere()
    for n in range(5):
        attempt(here, kim.username, "wrong", "/admin/login/" if n % 2 else "/login/")
    refused = attempt(here, kim.username, PASSWORD, "/admin/login/")
    assert "Too many attempts" in refused.content.decode()
    assert "sessionid" not in refused.cookies
    assert attempt(somewhere(), kim.username, PASSWORD, "/admin/login/").status_code == 302


def test_one_address_may_not_try_every_name(kim: User) -> None:
    here = somewhere()
    judged = [attempt(here, f"{new_id()}", "wrong").status_code for _ in range(50)]
    assert judged == [200] * 50
    assert attempt(here, kim.username, PASSWORD).status_code == 429


def test_the_notice_speaks_the_reader_s_language(kim: User) -> None:
    here = somewhere()
    for _ in range(5):
        attempt(here, kim.username, "wrong")
    door = Client(REMOTE_ADDR=here, headers={"accept-language": "zh-CN"})
    page = door.post("/login/", {"username": kim.username, "password": PASSWORD}).content.decode()
    assert "尝试次数过多" in page


def test_without_redis_log_ins_go_on(kim: User, settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"
    here = somewhere()
    assert [attempt(here, kim.username, "wrong").status_code for _ in range(6)] == [200] * 6
    assert attempt(here, kim.username, PASSWORD).status_code == 302


def test_guesses_at_once_share_one_bucket(redis: Redis) -> None:
    bucket = Bucket(f"test:{new_id()}", burst=5, every_s=60)
    with ThreadPoolExecutor(20) as threads:
        waits = list(threads.map(lambda _: take(redis, [bucket]), range(20)))
    assert sorted(waits)[:6] == [0, 0, 0, 0, 0, 60]


def test_a_bucket_fills_again_and_not_above_its_brim(redis: Redis) -> None:
    bucket = Bucket(f"test:{new_id()}", burst=1, every_s=1)
    give_back(redis, [bucket])
    assert take(redis, [bucket]) == 0
    assert take(redis, [bucket]) == 1
    give_back(redis, [bucket])
    give_back(redis, [bucket])
    assert (take(redis, [bucket]), take(redis, [bucket])) == (0, 1)


def test_one_empty_bucket_leaves_the_others_full(redis: Redis) -> None:
    narrow, wide = (
        Bucket(f"test:{new_id()}", burst=1, every_s=60),
        Bucket(f"test:{new_id()}", burst=2, every_s=60),
    )
    assert [take(redis, [narrow, wide]) for _ in range(3)] == [0, 60, 60]
    assert take(redis, [wide]) == 0
