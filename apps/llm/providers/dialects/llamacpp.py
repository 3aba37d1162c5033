"""llama.cpp's own server. Source: github.com/ggml-org/llama.cpp, tools/server/README.md.

No address tells it, so it is chosen by hand. A slot keeps what it computed last, and a prompt goes to the slot whose
beginning is most like its own.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks("llamacpp", "llama.cpp", reads_ahead=True, stored_responses=False)
