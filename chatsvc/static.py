"""Static storage: hashed names, also inside ES module imports, so that a deploy never mixes old and new modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from rcssmin import cssmin
from rjsmin import jsmin
from whitenoise.storage import CompressedManifestStaticFilesStorage

HASH_LENGTH: Final = 8
_OURS: Final = ("js/wire/", "js/widget/", "js/dashboard/", "js/demo/", "css/")
_MINIFIERS: Final[dict[str, Callable[[str], str]]] = {".js": jsmin, ".css": cssmin}


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise has no types
    """Publishes our modules without comments and blanks (types and reasons are a third), hashed and compressed."""

    support_js_module_import_aggregation = True
    # A pass settles one level of imports; Django's five are too few for our modules. A cycle still fails.
    max_post_process_passes = 20

    def file_hash(self, name: str, content: Any = None) -> str | None:
        """Two thirds of Django's: every import of a module carries one, and they do not compress."""
        digest: str | None = super().file_hash(name, content)
        return digest and digest[:HASH_LENGTH]

    def post_process(
        self, paths: dict[str, Any], dry_run: bool = False, **options: Any
    ) -> Iterator[tuple[str, str, bool]]:
        ours = [name for name in paths if name.startswith(_OURS) and name.endswith((".js", ".css"))]
        if not dry_run:
            for name in ours:
                publish(Path(self.path(name)))
            # Hashed from the collected copies: the sources stay as they were written.
            paths |= {name: (self, name) for name in ours}
        yield from super().post_process(paths, dry_run=dry_run, **options)


def publish(path: Path) -> None:
    """Makes a collected copy smaller: the same names and statements, without comments and blanks."""
    text = path.read_text(encoding="utf-8")
    small = _MINIFIERS[path.suffix](text)
    if small != text:
        path.write_text(small, encoding="utf-8")
