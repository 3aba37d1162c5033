"""Fixtures every test may use."""

from __future__ import annotations

from tests.fakes.fixtures import plain_upstream, shop, upstream

__all__ = ["plain_upstream", "shop", "upstream"]
