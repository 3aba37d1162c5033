"""How servers that speak Chat Completions differ, as data. Nothing here acts; no Django.

Sources: the providers' API references; see the table in `docs/decisions/0002-http-client-for-token-streams.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Quirks:
    """What one server wants or calls otherwise. The defaults are the common denominator of unknown servers."""

    name: str
    label: str
    hosts: tuple[str, ...] = ()  # suffixes of the host name
    port: int = 0  # a port nobody else uses by default
    limit_field: str = "max_tokens"
    usage_in_stream: bool = True  # takes stream_options.include_usage
    quiet_padding: bool = False  # takes stream_options.include_obfuscation
    cache_key_field: str = ""  # body field that routes equal prefixes to the same cache
    cache_key_header: str = ""


GENERIC = Quirks("generic", "Other")
_KNOWN = (
    Quirks(
        "openai", "OpenAI", hosts=("api.openai.com",), limit_field="max_completion_tokens",
        quiet_padding=True, cache_key_field="prompt_cache_key",
    ),
    Quirks("deepseek", "DeepSeek", hosts=("api.deepseek.com",)),
    Quirks("qwen", "Qwen (DashScope)", hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com")),
    Quirks("vllm", "vLLM"),
    Quirks("ollama", "Ollama", port=11434),
    Quirks(
        "xai", "xAI", hosts=("api.x.ai",), limit_field="max_completion_tokens", cache_key_header="x-grok-conv-id"
    ),
    GENERIC,
)  # fmt: skip
BY_NAME = {quirks.name: quirks for quirks in _KNOWN}
CHOICES = [("auto", "Recognise by address"), *((quirks.name, quirks.label) for quirks in _KNOWN)]


def quirks_of(dialect: str, base_url: str) -> Quirks:
    """The chosen dialect, or for `auto` the one its address tells; unknown servers are `generic`."""
    if dialect != "auto":
        return BY_NAME.get(dialect, GENERIC)
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    for quirks in _KNOWN:
        if any(host == known or host.endswith(f".{known}") for known in quirks.hosts):
            return quirks
        if quirks.port and parts.port == quirks.port:
            return quirks
    return GENERIC
