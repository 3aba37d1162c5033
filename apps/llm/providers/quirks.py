"""What servers of one kind want or call otherwise, as a value. Nothing here acts; no Django.

Each provider's quirks are one file in `dialects`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quirks:
    """One dialect. The defaults are the common denominator of unknown servers."""

    name: str
    label: str
    hosts: tuple[str, ...] = ()  # suffixes of the host name
    port: int = 0  # a port nobody else uses by default
    quiet_padding: bool = False  # takes stream_options.include_obfuscation
    cache_key_field: str = ""  # body field that routes equal prefixes to the same cache
    cache_key_header: str = ""
    # Over plain HTTP: keeps what it has computed of a prompt in memory of its own, so that a request for one token
    # spares the next prompt that work.
    reads_ahead: bool = False
    # Native call, beside /v1, that loads the model and keeps it loaded: its path and its JSON but the model.
    residence: tuple[str, str] = ("", "{}")

    # Chat Completions
    limit_field: str = "max_tokens"
    usage_in_stream: bool = True  # takes stream_options.include_usage

    # The Responses API
    instructions_field: bool = True  # without it the policy is the first item of the input
    aside_role: str = "system"  # who says facts, articles and instructions of one turn
    stored_responses: bool = True  # takes previous_response_id over HTTP
    headers: tuple[tuple[str, str], ...] = ()

    # … over its WebSocket
    lanes: bool = False  # knows stream_id; else one response at a time on a connection
    warm_up: bool = False  # takes generate: false
    socket_life_s: float = 3_600.0
