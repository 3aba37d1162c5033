"""pytest fixtures over the fakes; `tests/conftest.py` imports them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.handle import Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A model server over TLS, HTTP/1.1 and HTTP/2, answering at once. Clients trust `upstream.ca_file`."""
    with Upstream() as server:
        yield server


@pytest.fixture
def plain_upstream() -> Iterator[Upstream]:
    """The same without TLS, HTTP/1.1 only, for a product process that cannot be given a CA."""
    with Upstream(tls=False) as server:
        yield server


@pytest.fixture
def shop() -> Iterator[Shop]:
    """Lantern's API with the demo's customers."""
    with Shop() as server:
        yield server
