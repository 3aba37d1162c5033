"""How fast the model server is and which dialect it speaks: every figure of the model, in one place."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class LineEnd(StrEnum):
    """The three line ends an event stream may use."""

    LF = "lf"
    CRLF = "crlf"
    CR = "cr"


class Chunking(StrEnum):
    """How events are cut into writes (an HTTP/1.1 chunk or an HTTP/2 frame each)."""

    EVENT = "event"
    BYTES = "bytes"  # one byte a write: splits characters, lines and CRLF
    RANDOM = "random"  # 1-24 bytes a write, seeded
    BURST = "burst"  # everything at the end in one write


class Reporting(StrEnum):
    """When the usage chunk comes."""

    ASKED = "asked"  # with stream_options.include_usage, as OpenAI does
    ALWAYS = "always"
    NEVER = "never"


class Upgrade(StrEnum):
    """What becomes of a request for a WebSocket that is not refused."""

    ACCEPT = "accept"
    STALL = "stall"  # no answer at all
    MANGLE = "mangle"  # 101 with a wrong `sec-websocket-accept`
    DIE = "die"  # 101, and closed with the first message: a proxy that knows no WebSocket


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Harmless differences between servers: a client has to read every one of them."""

    line_end: LineEnd = LineEnd.LF
    chunking: Chunking = Chunking.EVENT
    usage: Reporting = Reporting.ASKED
    deepseek_usage: bool = False  # prompt_cache_hit_tokens / prompt_cache_miss_tokens
    done: bool = True  # ends with data: [DONE]
    finish: bool = True  # a chunk with finish_reason
    space: bool = True  # "data: {" and not "data:{"
    two_lines: bool = False  # every JSON spread over two data lines
    comments: bool = False  # a comment before every event
    unknown_events: bool = False  # event:, id: and retry: lines, and kinds nobody knows
    unknown_fields: bool = False
    empty_deltas: bool = False  # between the words
    obfuscation: bool = False  # random padding, OpenAI's default
    reasoning_field: str = "reasoning_content"  # vLLM and OpenRouter say `reasoning`
    keepalive_s: float = 0.0  # `: keep-alive` (blank lines when not streaming) while it thinks; 0 is never
    headers_early: bool = True  # the head is sent before the model has thought


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model server. Seconds and tokens; the default answers at once.

    First token = first_token_s (or drawn from low..high, most likely first_token_s)
                + prefill_s_per_token × prompt tokens that are not in the prefix cache.
    A connection = setup_s (name, and whatever else is paid once) + one rtt_s for TCP + one for TLS 1.3.
    """

    name: str = "instant"
    seed: int = 1

    rtt_s: float = 0.0
    setup_s: float = 0.0
    auth_s: float = 0.0  # the first request of a connection
    gateway_s: float = 0.0  # every request
    first_token_s: float = 0.0
    first_token_low_s: float = 0.0
    first_token_high_s: float = 0.0  # 0: always first_token_s
    prefill_s_per_token: float = 0.0
    load_s: float = 0.0  # the model is loaded into memory first …
    unload_after_s: float = 300.0  # … when nobody has asked for so long
    tokens_per_s: float = 0.0  # 0: as fast as the socket takes them
    jitter: float = 0.0  # part of a token's interval that is random, 0..1

    cache_block_tokens: int = 16
    cache_minimum_tokens: int = 0
    cache_ttl_s: float = 300.0
    cache_blocks: int = 65_536  # per replica; least recently used go first
    cache_replicas: int = 1  # a request goes to one by its first 256 tokens and `prompt_cache_key`

    api_keys: tuple[str, ...] = ()  # empty: any key, or none
    forbidden_keys: tuple[str, ...] = ()  # known, but not allowed: 403
    models: tuple[str, ...] = ()  # empty: any name is served
    max_streams: int = 100  # HTTP/2, per connection
    idle_close_s: float = 0.0

    # The Responses API over WebSocket.
    ws_lanes: bool = True  # False: the sequential variant, which knows no `stream_id`
    ws_in_flight: int = 16  # responses of a connection at once; more are queued
    ws_names: int = 32
    ws_lifetime_s: float = 3_600.0
    ws_steering: bool = True
    ws_upgrade: Upgrade = Upgrade.ACCEPT
    ws_refusal: int = 0  # refuses the upgrade with this status
    ws_retry_after: str = ""

    dialect: Dialect = Dialect()

    def but(self, **changes: object) -> Profile:
        """The same with some fields changed."""
        return msgspec.structs.replace(self, **changes)


INSTANT = Profile()

# The figures the product is judged by: a distant API, everything from scratch on a cold connection.
BRIEF = Profile(
    name="brief",
    rtt_s=0.050,
    setup_s=0.020,
    auth_s=0.060,
    gateway_s=0.020,  # gateway 10, queue 10
    first_token_s=0.050,
    prefill_s_per_token=0.450 / 1_500,  # 500 ms for a cold prompt of 1,500 tokens
    tokens_per_s=60.0,
    jitter=0.3,
)

# A large hosted API: 200, 500 or 800 ms for 1,500 cold tokens, of which a cached prefix saves 10-30 %.
HOSTED = Profile(
    name="hosted",
    rtt_s=0.050,
    setup_s=0.020,
    auth_s=0.020,
    gateway_s=0.010,
    first_token_low_s=0.100,
    first_token_s=0.400,
    first_token_high_s=0.700,
    prefill_s_per_token=0.100 / 1_500,
    tokens_per_s=80.0,
    jitter=0.5,
    cache_block_tokens=128,
    cache_minimum_tokens=1_024,
)

# One's own card or processor: prefill dominates, a cached prefix saves 95 %.
SELF_HOSTED = Profile(
    name="self-hosted",
    first_token_s=0.060,
    prefill_s_per_token=0.001,
    tokens_per_s=30.0,
    jitter=0.1,
    dialect=Dialect(reasoning_field="reasoning"),
)

PROFILES = {profile.name: profile for profile in (INSTANT, BRIEF, HOSTED, SELF_HOSTED)}
