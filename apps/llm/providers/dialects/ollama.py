"""Ollama. Source: docs.ollama.com/api/openai-compatibility.

Known by its port. Its Responses API is stateless; how long a model stays loaded is set at the server
(`OLLAMA_KEEP_ALIVE`), not in these APIs.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks("ollama", "Ollama", port=11434, stored_responses=False)
