"""What must be done before the services start: catalogs, bytecode, static files, migrations, the demo's data.

A process of its own (`python -m chatsvc.embedded.prepare`), so that the supervisor stays small.
"""

from __future__ import annotations

import compileall
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import django
import polib
from django.conf import settings
from django.core.management import call_command

from chatsvc.environment import BASE_DIR


def main() -> int:
    compile_catalogs(BASE_DIR / "locale")
    for package in ("apps", "chatsvc"):
        compileall.compile_dir(BASE_DIR / package, quiet=2)
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    collect_static(settings.STATIC_ROOT)
    if settings.DEMO:
        call_command("seed_demo", verbosity=0)
    return 0


def compile_catalogs(folder: Path) -> None:
    """Makes each `.mo` that is missing or older than its `.po`, without gettext's programs."""
    for source in folder.glob("*/LC_MESSAGES/*.po"):
        compiled = source.with_suffix(".mo")
        if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
            # Whole or not at all: another process may be reading it, or making it too.
            with tempfile.TemporaryDirectory(dir=compiled.parent) as beside:
                made = Path(beside) / compiled.name
                polib.pofile(str(source)).save_as_mofile(str(made))
                made.replace(compiled)


def collect_static(target: Path) -> None:
    """Collects when a source has changed since the last time; files of older pages stay."""
    stamp = target / ".collected"
    digest = hashlib.sha256("\n".join(_static_facts()).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(digest, encoding="utf-8")


def _static_facts() -> Iterator[str]:
    # The packages' own files change only with their pinned versions.
    yield (BASE_DIR / "requirements.txt").read_text(encoding="utf-8")
    for folder in (BASE_DIR / "static", *BASE_DIR.glob("apps/*/static")):
        for path in sorted(folder.rglob("*")):
            facts = path.stat()
            yield f"{path.relative_to(BASE_DIR)} {facts.st_size} {facts.st_mtime_ns}"


if __name__ == "__main__":
    sys.exit(main())
