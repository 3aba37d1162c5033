"""Prints what the products have recorded of their turns, as JSON: one object a turn."""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from apps.turns.models import Turn  # noqa: E402 - the models need the setup


def main() -> None:
    turns = [
        {
            "turn": row.turn,
            "stages": {name: ms for name, _, ms in row.stages},
            "marks": row.marks,
            "ttft_ms": row.ttft_ms,
            "added_ms": row.added_ms,
            "prompt_tokens": row.prompt_tokens,
            "cached_tokens": row.cached_tokens,
        }
        for row in Turn.objects.order_by("pk")
    ]
    sys.stdout.write(json.dumps(turns))


if __name__ == "__main__":
    main()
