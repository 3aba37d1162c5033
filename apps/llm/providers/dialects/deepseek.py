"""DeepSeek. Source: api-docs.deepseek.com.

Sends `: keep-alive` comments while a request is queued; thinks in `reasoning_content`, by default; counts cached
tokens as `prompt_cache_hit_tokens`. All of that is read from every server.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks("deepseek", "DeepSeek", hosts=("api.deepseek.com",))
