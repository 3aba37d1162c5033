"""OpenAI. Sources: platform.openai.com/docs/api-reference; developers.openai.com/api/docs/guides/websocket-mode.

Deltas are padded with random characters unless told otherwise. A cache key routes equal prefixes to one machine.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "openai", "OpenAI", hosts=("api.openai.com",), limit_field="max_completion_tokens", quiet_padding=True,
    cache_key_field="prompt_cache_key", aside_role="developer", lanes=True, warm_up=True,
)  # fmt: skip
