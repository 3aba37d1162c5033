"""The shop's API: its contract, its demo customers, and its bad days."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from datetime import date

import httpx
import pytest

from tests.fakes.shop.handle import Shop
from tests.fakes.shop.server import Mood

HAN = re.compile(r"[\u4e00-\u9fff]")


def client(shop: Shop, key: str | None = None, read_s: float = 10.0) -> httpx.Client:
    key = shop.key if key is None else key
    bearer = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=shop.url, headers=bearer, timeout=httpx.Timeout(10.0, read=read_s))


def test_tells_who_a_customer_is(shop: Shop) -> None:
    with client(shop) as it:
        mia = it.get("/customers/mia").json()
    assert mia["attributes"].pop("member_since") == 2021
    assert mia == {
        "id": "mia",
        "name": "Mia Chen",
        "email": "mia.chen@example.com",
        "tier": "gold",
        "attributes": {"language": "zh-Hans", "city": "Vancouver", "newsletter": True},
    }


@pytest.mark.parametrize(
    ("customer", "orders"),
    [
        ("mia", {"1042": "in_transit", "1017": "delivered", "0998": "returned"}),
        ("leo", {"1050": "processing", "1031": "delivered"}),
    ],
)
def test_tells_a_customers_orders_newest_first(shop: Shop, customer: str, orders: dict[str, str]) -> None:
    with client(shop) as it:
        told = it.get(f"/customers/{customer}/orders").json()["orders"]
    assert [(order["number"], order["status"]) for order in told] == list(orders.items())
    assert [order["placed_on"] for order in told] == sorted((o["placed_on"] for o in told), reverse=True)
    fields = {"number", "status", "placed_on", "items", "total", "carrier", "tracking", "eta"}
    assert all(set(order) == fields for order in told)
    # One language, whoever asks: a shop has one name for a thing, and answers do not change language midway.
    assert not any(HAN.search(item) for order in told for item in order["items"])


def test_dates_its_orders_by_the_day_it_is_given() -> None:
    with Shop(today=date(2026, 3, 2)) as shop, client(shop) as it:
        newest = it.get("/customers/mia/orders").json()["orders"][0]
    assert (newest["placed_on"], newest["eta"]) == ("2026-02-26", "2026-03-04")


@pytest.mark.parametrize("key", ["", "wrong"])
def test_tells_nothing_without_its_key(shop: Shop, key: str) -> None:
    with client(shop, key) as it:
        answers = [it.get(path) for path in ("/customers/mia", "/customers/nobody", "/customers/mia/orders")]
    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (401, {"detail": "Unknown key."})
    ] * 3
    assert shop.counts().unauthorized == 3


@pytest.mark.parametrize(
    "path", ["/customers/nobody", "/customers/nobody/orders", "/customers/mia/x", "/", "/orders/mia"]
)
def test_knows_no_other_address(shop: Shop, path: str) -> None:
    with client(shop) as it:
        assert it.get(path).status_code == 404


def test_changes_nothing(shop: Shop) -> None:
    with client(shop) as it:
        assert it.post("/customers/mia", json={"tier": "standard"}).status_code == 404
        assert it.get("/customers/mia").json()["tier"] == "gold"


def test_keeps_its_connections_and_counts_them(shop: Shop) -> None:
    with client(shop) as it:
        it.get("/customers/mia")
        it.get("/customers/mia/orders")
    counts = shop.counts()
    assert (counts.connections_opened, counts.requests) == (1, 2)
    assert counts.paths == ["/customers/mia", "/customers/mia/orders"]


def test_has_a_bad_day_for_as_many_requests_as_told(shop: Shop) -> None:
    shop.behave(Mood.ERROR, times=2)
    with client(shop) as it:
        assert [it.get("/customers/mia").status_code for _ in range(3)] == [500, 500, 200]


def test_has_a_bad_day_at_one_address_only(shop: Shop) -> None:
    shop.behave(Mood.UNAUTHORIZED, path="/orders")
    with client(shop) as it:
        assert it.get("/customers/mia").status_code == 200
        assert it.get("/customers/mia/orders").status_code == 401


def test_garbles_its_json(shop: Shop) -> None:
    shop.behave(Mood.GARBLE)
    with client(shop) as it:
        answer = it.get("/customers/mia")
    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        answer.json()


def test_answers_late(shop: Shop) -> None:
    shop.behave(Mood.SLOW, seconds=0.05)
    with client(shop) as it:
        answer = it.get("/customers/mia")
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() >= 0.05


def test_stalls_until_it_is_released(shop: Shop) -> None:
    shop.behave(Mood.STALL)
    with client(shop, read_s=0.05) as it, pytest.raises(httpx.ReadTimeout):
        it.get("/customers/mia")
    shop.release()
    with client(shop) as it:
        assert it.get("/customers/mia").status_code == 200
    assert shop.counts().stalled == 0


def test_resets_and_refuses_connections(shop: Shop) -> None:
    with client(shop) as it:
        shop.behave(Mood.RESET, times=1)
        with pytest.raises(httpx.ReadError):
            it.get("/customers/mia")
        shop.refuse()
        with pytest.raises(httpx.ConnectError):
            it.get("/customers/mia")
        shop.accept()
        assert it.get("/customers/mia").status_code == 200


def test_needs_no_development_package() -> None:
    without = "import sys; sys.modules['trustme'] = None; import tests.fakes.shop.__main__"
    assert subprocess.run([sys.executable, "-c", without], check=False).returncode == 0


def test_runs_as_a_process_of_its_own_and_obeys_over_http() -> None:
    command = [sys.executable, "-m", "tests.fakes.shop", "--key", "k"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            with httpx.Client(base_url=url, headers={"authorization": "Bearer k"}) as it:
                assert it.post("/_control/behave", json={"mood": "error", "times": 1}).status_code == 200
                assert it.get("/customers/leo").status_code == 500
                assert it.get("/customers/leo").json()["name"] == "Leo Martin"
                assert it.get("/_control/counts").json()["requests"] == 2
                assert it.post("/_control/behave", json={"mood": "odd"}).status_code == 400
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
