"""xAI. Source: docs.x.ai.

A header keeps a conversation on one cache.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "xai", "xAI", hosts=("api.x.ai",), limit_field="max_completion_tokens", cache_key_header="x-grok-conv-id",
)  # fmt: skip
