"""Ollama. Source: docs.ollama.com/api/openai-compatibility.

Known by its port. Its Responses API is stateless. A model is unloaded after five minutes without a question; these APIs
cannot say otherwise, its native one can: a request without a prompt loads the model, and `keep_alive` holds it.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "ollama", "Ollama", port=11434, stored_responses=False, reads_ahead=True,
    residence=("api/generate", '{"keep_alive":-1,"stream":false}'),
)  # fmt: skip
