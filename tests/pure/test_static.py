"""What is published of our modules: the same code without the comments that stand alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from chatsvc.environment import BASE_DIR
from chatsvc.static import publish

MODULES = sorted((BASE_DIR / "static/js").rglob("*.js"))


def published(tmp_path: Path, text: str) -> str:
    path = tmp_path / "module.mjs"
    path.write_text(text, encoding="utf-8")
    publish(path)
    return path.read_text(encoding="utf-8")


def test_comments_that_stand_alone_are_left_out(tmp_path: Path) -> None:
    text = "/**\n * Adds.\n * @param {number} a\n */\nexport const add = 1;\n  // why\n/* x */\nadd();\n"
    assert published(tmp_path, text) == "export const add = 1;\nadd();\n"


@pytest.mark.parametrize(
    "text",
    [
        "/** @type {A} */ (a).b();\nc();\n/** @type {A} */ (d).e();\n",
        "a(); // why\n",
        'const url = "https://shop.example";\n',
        "const glob = `a/*\n`;\n",
    ],
)
def test_code_beside_a_comment_is_untouched(tmp_path: Path, text: str) -> None:
    assert published(tmp_path, text) == text


def test_between_two_comments_no_code_is_lost(tmp_path: Path) -> None:
    text = "/** @type {A} */ (a).b();\n/** alone */\nc();\n"
    assert published(tmp_path, text) == "/** @type {A} */ (a).b();\nc();\n"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_every_published_module_still_parses(tmp_path: Path, module: Path) -> None:
    text = published(tmp_path, module.read_text(encoding="utf-8"))
    node = shutil.which("node")
    assert node, "node is a tool of the tests"
    (tmp_path / "module.mjs").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [node, "--check", str(tmp_path / "module.mjs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
