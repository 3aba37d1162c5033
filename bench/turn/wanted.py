"""What a bench wants its database to hold: said by the process that measures to the one that fills it."""

from __future__ import annotations

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answers, as an endpoint's fields."""

    base_url: str
    model: str = "bench"
    api_key: str = "key"
    dialect: str = "auto"
    max_output_tokens: int = 700
    prepare_prompts: bool = False


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One site, and so many customers and visitors."""

    shop_url: str
    shop_key: str
    model: Model
    customers: int
    answer_cache: str
    articles: bool = True
    speculation_tokens: int = 0
