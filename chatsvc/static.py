"""Static storage: hashed names, also inside ES module imports, so that a deploy never mixes old and new modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage

# Whole lines only, as our modules are written: a comment with code before or behind it stays.
_COMMENTS = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/).)*\*/[ \t]*|//[^\n]*)\n", re.DOTALL | re.MULTILINE)
_OURS = ("js/wire/", "js/widget/", "js/dashboard/", "js/demo/", "css/")


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise has no types
    """Publishes our modules without their comments (types and reasons are a third of them), hashed and compressed."""

    support_js_module_import_aggregation = True
    # A pass settles one level of imports; Django's five are too few for our modules. A cycle still fails.
    max_post_process_passes = 20

    def post_process(
        self, paths: dict[str, Any], dry_run: bool = False, **options: Any
    ) -> Iterator[tuple[str, str, bool]]:
        ours = [name for name in paths if name.startswith(_OURS) and name.endswith((".js", ".css"))]
        if not dry_run:
            for name in ours:
                publish(Path(self.path(name)))
            # Hashed from the collected copies: the sources keep their comments.
            paths |= {name: (self, name) for name in ours}
        yield from super().post_process(paths, dry_run=dry_run, **options)


def publish(path: Path) -> None:
    """Leaves the comments out of a collected copy."""
    text = path.read_text(encoding="utf-8")
    bare = _COMMENTS.sub("", text)
    if bare != text:
        path.write_text(bare, encoding="utf-8")
