"""What is published of our modules and style sheets: the same code, without comments and blanks, and small."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage

from apps.web.widget import MODULES
from chatsvc.environment import BASE_DIR
from chatsvc.static import ModuleManifestStorage, publish

WIDGET_LIMIT_BYTES = 40 * 1024
PARSE_ALL = """
const { readFileSync, readdirSync } = require("node:fs");
const { SourceTextModule } = require("node:vm");
const scripts = readdirSync(process.argv[1], { recursive: true }).filter((name) => name.endsWith(".js"));
for (const name of scripts) {
  new SourceTextModule(readFileSync(`${process.argv[1]}/${name}`, "utf8"), { identifier: name });
}
console.log(scripts.length);
"""


def published(tmp_path: Path, text: str, suffix: str = ".js") -> str:
    path = tmp_path / f"module{suffix}"
    path.write_text(text, encoding="utf-8")
    publish(path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published") / "static"


@pytest.fixture(scope="module")
def collected(root: Path) -> ModuleManifestStorage:
    """Our scripts and styles as `collectstatic` leaves them."""
    source, target = FileSystemStorage(BASE_DIR / "static"), ModuleManifestStorage(location=root)
    files = [path for folder in ("js", "css") for path in (BASE_DIR / "static" / folder).rglob("*.*")]
    paths: dict[str, Any] = {}
    for name in (path.relative_to(BASE_DIR / "static").as_posix() for path in files):
        with source.open(name) as file:
            target.save(name, file)
        paths[name] = (source, name)
    for name, _, result in target.post_process(paths):
        assert not isinstance(result, Exception), f"{name}: {result}"
    return target


def test_comments_and_blanks_are_left_out(tmp_path: Path) -> None:
    text = "/**\n * Adds.\n */\nexport const add = 1;\n  // why\n/* x */\nadd(/** @type {A} */ (b)); // end\n"
    assert published(tmp_path, text).strip() == "export const add=1;add((b));"
    assert published(tmp_path, "/* why */\na > b {\n  color: red;\n}\n", ".css") == "a>b{color:red}"


@pytest.mark.parametrize(
    "text",
    [
        'const url="https://shop.example";',
        "const glob=`a/*\n  b // c`;",
        "const slash=/[/*]\\/\\//u;",
        "class A{#b=1;get b(){return this.#b}}",
    ],
)
def test_what_only_looks_like_a_comment_or_a_blank_stays(tmp_path: Path, text: str) -> None:
    assert published(tmp_path, text) == text


def test_every_published_script_still_parses(tmp_path: Path) -> None:
    shutil.copytree(BASE_DIR / "static/js", tmp_path / "js")
    for script in (tmp_path / "js").rglob("*.js"):
        publish(script)
    done = node("--experimental-vm-modules", "--no-warnings", "--eval", PARSE_ALL, str(tmp_path / "js"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_the_published_modules_pass_the_tests_of_the_written_ones(tmp_path: Path) -> None:
    for part in ("static/js", "tests/js", "tests/frames"):
        shutil.copytree(BASE_DIR / part, tmp_path / part)
    shutil.copy(BASE_DIR / "package.json", tmp_path)
    for script in (tmp_path / "static/js").rglob("*.js"):
        publish(script)
    # The tests of the dashboard's words read its sources as text.
    tests = [
        path for path in (tmp_path / "tests/js").glob("*.test.js") if path.stem != "dashboard-words.test"
    ]
    done = node("--test", "--test-reporter=tap", *map(str, tests))
    assert done.returncode == 0, done.stdout[-4_000:]
    assert re.search(r"^# pass [1-9]", done.stdout, flags=re.MULTILINE)


def test_every_import_of_a_published_module_is_hashed(collected: ModuleManifestStorage, root: Path) -> None:
    for module in MODULES:
        text = (root / collected.stored_name(module)).read_text(encoding="utf-8")
        for name in re.findall(r'from"([^"]+)"|import\(?"([^"]+)"', text):
            assert re.search(r"\.[0-9a-f]{8}\.js$", "".join(name)), (module, name)


def test_the_widget_is_below_40_kb(collected: ModuleManifestStorage, root: Path) -> None:
    frame = (BASE_DIR / "templates/widget/frame.html").read_text(encoding="utf-8")
    styles = re.findall(r'rel="stylesheet" href="{% static "([^"]+)" %}"', frame)
    assert len(styles) == 2
    sizes = {name: served_bytes(root / collected.stored_name(name)) for name in (*MODULES, *styles)}
    assert sum(sizes.values()) < WIDGET_LIMIT_BYTES, sorted(sizes.items(), key=lambda item: -item[1])


def served_bytes(path: Path) -> int:
    """What a browser that takes gzip receives."""
    packed = path.with_name(f"{path.name}.gz")
    return (packed if packed.exists() else path).stat().st_size


def node(*words: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("node")
    assert found, "node is a tool of the tests"
    return subprocess.run([found, *words], capture_output=True, text=True, check=False)
