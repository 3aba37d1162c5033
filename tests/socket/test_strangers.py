"""What strangers try at our doors is refused, and leaves one calm line in the log at most."""

from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.processes import Web


def logged_since(web: Web, before: str) -> list[str]:
    """What a refusal has written, seen once a later line is there."""
    httpx.get(f"{web.url}/marker-of-the-test")
    web.wait_until(lambda: "/marker-of-the-test" in web.output()[len(before) :])
    lines = web.output()[len(before) :].splitlines()
    return [line for line in lines if "/marker-of-the-test" not in line]


def test_a_name_that_is_not_ours_is_one_warning_that_tells_the_name(web: Web) -> None:
    before = web.output()
    assert httpx.get(f"{web.url}/login/", headers={"Host": "stranger.example"}).status_code == 400
    [line] = logged_since(web, before)
    assert " WARNING django.security.DisallowedHost " in line
    assert "'stranger.example'" in line


@pytest.mark.parametrize("path", ["", "/", "/ws/", "/ws/nobody", "/ws/customer/", "/a%0Ab", "/%E4%BD%A0"])
def test_a_socket_on_no_path_of_ours_is_refused_without_a_word(web: Web, path: str) -> None:
    before = web.output()
    with pytest.raises(InvalidStatus) as refused, connect(f"{web.ws}{path}"):
        pass
    assert refused.value.response.status_code == 403
    assert logged_since(web, before) == []
