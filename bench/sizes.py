"""What a browser loads of the widget and the dashboard: `python -m bench.sizes`. Markdown on standard output."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")
_folder = tempfile.TemporaryDirectory(prefix="chatsvc-bench-")
os.environ["CHATSVC_VAR"] = _folder.name
os.environ.setdefault("SECRET_KEY", "only-for-the-bench" * 3)

import django  # noqa: E402 - the folder first

django.setup()

from django.conf import settings  # noqa: E402 - Django first
from django.contrib.staticfiles.storage import staticfiles_storage  # noqa: E402
from django.core.management import call_command  # noqa: E402

from apps.web.dashboard import modules  # noqa: E402
from apps.web.widget import MODULES  # noqa: E402
from chatsvc.environment import BASE_DIR  # noqa: E402


def main() -> None:
    call_command("collectstatic", interactive=False, verbosity=0)
    print("| | files | as written, bytes | gzip | Brotli |\n|---|---|---|---|---|")
    loader = (BASE_DIR / "static/js/widget/loader.js").read_bytes()
    print(f"| loader | 1 | {len(loader):,} | {len(gzip.compress(loader, mtime=0)):,} | not served |")
    print(_row("widget", [*MODULES, *_styles("widget/frame.html")]))
    print(_row("dashboard", [*modules(), *_styles("dashboard/base.html"), *_styles("dashboard/shell.html")]))


def _row(name: str, files: Iterable[str]) -> str:
    stored = [staticfiles_storage.url(file).removeprefix(settings.STATIC_URL) for file in files]
    paths = [Path(settings.STATIC_ROOT) / name for name in stored]
    written = sum((BASE_DIR / "static" / file).stat().st_size for file in files)
    return f"| {name} | {len(paths)} | {written:,} | {_served(paths, '.gz'):,} | {_served(paths, '.br'):,} |"


def _served(paths: Iterable[Path], suffix: str) -> int:
    """Bytes to a browser that takes this compression; a file that gains nothing by it is served as it is."""
    packed = [(path, path.with_name(path.name + suffix)) for path in paths]
    return sum((small if small.exists() else path).stat().st_size for path, small in packed)


def _styles(template: str) -> list[str]:
    text = (BASE_DIR / "templates" / template).read_text(encoding="utf-8")
    return re.findall(r"""rel="stylesheet" href="{% static ['"]([^'"]+)['"] %}""", text)


if __name__ == "__main__":
    main()
