"""Behind a proxy that ends TLS: what our pages say of themselves, and whom they take a stranger for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from apps.wire.protocol import JSON_SUBPROTOCOL
from chatsvc.proxy import behind_tls_proxy
from tests.support.processes import Deployment, Web, ended_after

PUBLIC = {
    "Host": "chat.example.com",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "10.0.0.9, 203.0.113.7",
}


@dataclass(frozen=True, slots=True)
class Fronted:
    """A web process that was told of a proxy."""

    url: str

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=PUBLIC | headers, timeout=20)


@pytest.fixture(scope="module")
def fronted(deployment: Deployment) -> Iterator[Fronted]:
    process = Web(deployment, "fronted-web", BEHIND_TLS_PROXY="1", ALLOWED_HOSTS="chat.example.com,127.0.0.1")
    with ended_after(process):
        yield Fronted(process.url)


def test_pages_name_the_address_that_the_browser_has(fronted: Fronted) -> None:
    policy = fronted.get("/login/").headers["Content-Security-Policy"]
    assert "wss://chat.example.com" in policy
    assert "ws://chat.example.com" not in policy.replace("wss://", "")


def test_cookies_travel_over_tls_only(fronted: Fronted) -> None:
    cookies = fronted.get("/login/").headers.get_list("set-cookie")
    assert cookies
    assert all("Secure" in cookie for cookie in cookies)


def test_a_log_in_needs_no_list_of_origins(fronted: Fronted) -> None:
    token = fronted.get("/login/").cookies["csrftoken"]
    answer = httpx.post(
        fronted.url + "/login/",
        headers=PUBLIC | {"Origin": "https://chat.example.com", "Cookie": f"csrftoken={token}"},
        data={"csrfmiddlewaretoken": token, "username": "nobody", "password": "wrong"},
        timeout=20,
    )
    assert answer.status_code != 403


def test_metrics_are_for_nobody_who_comes_through_the_proxy(fronted: Fronted) -> None:
    assert fronted.get("/metrics", **{"X-Forwarded-For": "10.0.0.9"}).status_code == 403


def test_sockets_open_through_the_proxy(fronted: Fronted) -> None:
    with connect(
        fronted.url.replace("http", "ws") + "/ws/customer",
        origin=Origin("https://chat.example.com"),
        subprotocols=[Subprotocol(JSON_SUBPROTOCOL)],
        additional_headers={name: value for name, value in PUBLIC.items() if name != "Host"},
        open_timeout=20,
    ) as socket:
        assert socket.subprotocol == JSON_SUBPROTOCOL


@pytest.mark.parametrize("forwarded", ["203.0.113.7", "10.0.0.9, 203.0.113.7", "unknown,203.0.113.7"])
async def test_the_last_forwarded_address_is_the_client_s(forwarded: str) -> None:
    seen = await seen_by_the_application([(b"x-forwarded-for", forwarded.encode())])
    assert seen["client"][0] == "203.0.113.7"


async def test_what_the_proxy_does_not_say_stays_as_it_is() -> None:
    seen = await seen_by_the_application([])
    assert (seen["client"], "scheme" in seen) == (["127.0.0.1", 4711], False)


async def seen_by_the_application(headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    scopes: list[dict[str, Any]] = []

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        scopes.append(scope)

    socket = {"type": "websocket", "client": ["127.0.0.1", 4711], "headers": headers}
    await behind_tls_proxy(application)(socket, None, None)
    return scopes[0]


def test_without_the_setting_nobody_s_headers_are_believed(web: Web) -> None:
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    policy = httpx.get(web.url + "/login/", headers=headers, timeout=20).headers["Content-Security-Policy"]
    assert "wss://" not in policy
