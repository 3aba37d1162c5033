"""Copies of the shop's data in Redis: written by the preload or a turn that had to ask, read by all turns."""

from __future__ import annotations

from typing import Final

import msgspec
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from apps.customers.connectors import ShopData

LIFETIME_S: Final = 600


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ShopData)


async def read(redis: Redis, customer_id: str) -> ShopData | None:
    """The copy, or None when there is none or it was written by another version of us."""
    return _decoded(await redis.get(_key(customer_id)))


async def write(redis: Redis, customer_id: str, data: ShopData) -> None:
    """Good for ten minutes. Raises redis' errors."""
    await redis.set(_key(customer_id), _encoder.encode(data), ex=LIFETIME_S)


async def lives_s(redis: Redis, customer_id: str) -> float:
    """How long the copy is still good; 0 when there is none. Raises redis' errors."""
    return max(0.0, float(await redis.pttl(_key(customer_id))) / 1000)


def write_sync(redis: SyncRedis, customer_id: str, data: ShopData) -> None:
    """The same for the worker."""
    redis.set(_key(customer_id), _encoder.encode(data), ex=LIFETIME_S)


def _key(customer_id: str) -> str:
    return f"profile:{customer_id}"


def _decoded(raw: bytes | str | None) -> ShopData | None:
    if not isinstance(raw, bytes):  # the clients do not decode; redis' types cannot say so
        return None
    try:
        return _decoder.decode(raw)
    except msgspec.DecodeError:
        return None
