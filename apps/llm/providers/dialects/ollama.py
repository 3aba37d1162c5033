"""Ollama. Source: docs.ollama.com/api/openai-compatibility.

Known by its port. How long a model stays loaded is set at the server (`OLLAMA_KEEP_ALIVE`), not in
its OpenAI-compatible API.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks("ollama", "Ollama", port=11434)
