"""The APIs that an endpoint may speak, by the names under which the tests know them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.upstream.profile import INSTANT, Profile

# An endpoint's fields. A socket of `sequential` has one answer at a time, one of `lanes` has many.
FIELDS: dict[str, dict[str, Any]] = {
    "chat": {},
    "responses": {"provider": "responses", "dialect": "openai"},
    "sequential": {"provider": "responses_socket", "dialect": "xai"},
    "lanes": {"provider": "responses_socket", "dialect": "openai"},
}
SOCKETS = ("sequential", "lanes")


def of(*apis: str) -> pytest.MarkDecorator:
    """Runs the test with each of these APIs."""
    return pytest.mark.parametrize("api", apis, indirect=True)


def profile_of(api: str, **fields: Any) -> Profile:
    return INSTANT.but(ws_lanes=api != "sequential", **fields)
