"""vLLM. Source: docs.vllm.ai, serving/openai_compatible_server.

No address tells it, so it is chosen by hand. Thinks in `reasoning` (`reasoning_content` before). Keeps responses only
when started with VLLM_ENABLE_RESPONSES_API_STORE. Keeps full blocks of what it has computed (automatic prefix caching).
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks("vllm", "vLLM", reads_ahead=True)
