"""Where the demo's shop listens and by which key it knows us: kept in `var/`, read by the seed too."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from chatsvc.embedded.ports import free_port, is_free

_FILE = "demo-shop.json"


@dataclass(frozen=True, slots=True)
class DemoShop:
    port: int
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def ensure_demo_shop(var_dir: Path) -> DemoShop:
    """The shop of this checkout; a new key at the first call, another port when the old one is taken."""
    known = read_demo_shop(var_dir)
    if known and is_free("127.0.0.1", known.port):
        return known
    shop = DemoShop(port=free_port(), key=known.key if known else secrets.token_urlsafe(24))
    path = var_dir / _FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps({"port": shop.port, "key": shop.key}), encoding="utf-8")
    return shop


def read_demo_shop(var_dir: Path) -> DemoShop | None:
    """The shop as last started, or None before the first start."""
    try:
        read = json.loads((var_dir / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return DemoShop(port=int(read["port"]), key=str(read["key"]))
