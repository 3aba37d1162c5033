"""Copies of the shop's data in Redis: written by the preload or a turn that had to ask, read by all turns."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from apps.customers.connectors import ShopData
from apps.engine.types import Order, Profile

LIFETIME_S: Final = 600


class Copy(msgspec.Struct, frozen=True, array_like=True):
    """The shop's data as it was at `fetched_at` (seconds since 1970). No profile: the shop knows nobody."""

    fetched_at: float
    profile: Profile | None
    orders: tuple[Order, ...]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Copy)


async def read(redis: Redis, customer_id: str) -> Copy | None:
    """The copy, or None when there is none or it was written by another version of us."""
    return _decoded(await redis.get(_key(customer_id)))


async def write(redis: Redis, customer_id: str, data: ShopData) -> None:
    """Good for ten minutes. Raises redis' errors."""
    await redis.set(_key(customer_id), _encoded(data), ex=LIFETIME_S)


def write_sync(redis: SyncRedis, customer_id: str, data: ShopData) -> None:
    """The same for the worker."""
    redis.set(_key(customer_id), _encoded(data), ex=LIFETIME_S)


async def forget(redis: Redis, customer_id: str) -> None:
    """The next turn that needs the facts asks the shop. Raises redis' errors."""
    await redis.delete(_key(customer_id))


def _key(customer_id: str) -> str:
    return f"profile:{customer_id}"


def _encoded(data: ShopData) -> bytes:
    return _encoder.encode(Copy(time.time(), data.profile, data.orders))


def _decoded(raw: bytes | str | None) -> Copy | None:
    if not isinstance(raw, bytes):  # the clients do not decode; redis' types cannot say so
        return None
    try:
        return _decoder.decode(raw)
    except msgspec.DecodeError:
        return None
