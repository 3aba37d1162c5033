"""xAI. Source: docs.x.ai/developers/advanced-api-usage/websocket-mode.

A header keeps a conversation on one cache. Its WebSocket is sequential and closes after 25 minutes (seen by public
clients, not documented).
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "xai", "xAI", hosts=("api.x.ai",), limit_field="max_completion_tokens", cache_key_header="x-grok-conv-id",
    warm_up=True, socket_life_s=1_500.0,
)  # fmt: skip
