"""What the documentation names exists: files, names in them, tests, pages it links to."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from chatsvc.environment import BASE_DIR

PAGES = [BASE_DIR / "README.md", BASE_DIR / "CHANGELOG.md", *sorted((BASE_DIR / "docs").rglob("*.md"))]
_CODE = re.compile(r"`([^`\n]+)`")
_PLACE = re.compile(
    r"((?:apps|bench|chatsvc|docs|locale|static|templates|tests)/[\w./-]*)(?::([A-Za-z_][\w.]*))?"
)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def spoken(page: Path) -> list[str]:
    """Everything the page sets in code, outside its blocks."""
    return _CODE.findall(re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, classes and constants of a module; members of a class as `Class.member`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set(_defined(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for name in _defined(node.body)}
    return frozenset(found)


def _defined(body: list[ast.stmt]) -> list[str]:
    defined = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined.append(node.target.id)
        elif isinstance(node, ast.Assign):
            defined += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return defined


@cache
def all_tests() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (BASE_DIR / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BASE_DIR)))
def test_what_a_page_names_is_there(page: Path) -> None:
    places = [found for code in spoken(page) if (found := _PLACE.fullmatch(code))]
    missing = [place[0] for place in places if not (BASE_DIR / place[1]).exists()]
    missing += [
        place[0] for place in places if place[2] and place[0] not in missing
        and place[2] not in names(BASE_DIR / place[1])
    ]  # fmt: skip
    missing += [
        code for code in spoken(page) if re.fullmatch(r"test_\w+", code) and f"def {code}(" not in all_tests()
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BASE_DIR)))
def test_what_a_page_links_to_is_there(page: Path) -> None:
    targets = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (BASE_DIR / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (BASE_DIR / "docs" / "decisions").glob("0*.md")}
    assert pages == set(_LINK.findall(index))


def test_every_setting_is_explained() -> None:
    source = (BASE_DIR / "chatsvc" / "environment.py").read_text(encoding="utf-8")
    read = set(re.findall(r'values\.get\("([A-Z_]+)"', source))
    table = (BASE_DIR / "docs" / "operations.md").read_text(encoding="utf-8").partition("## Processes")[0]
    explained = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])
    }
    assert explained == read


def test_every_bench_that_a_page_names_is_there() -> None:
    named = {
        name for page in PAGES for name in re.findall(r"python -m (bench\.\w+)", page.read_text("utf-8"))
    }
    assert named
    places = {name: BASE_DIR / name.replace(".", "/") for name in named}
    runnable = {
        name
        for name, place in places.items()
        if place.with_suffix(".py").exists() or (place / "__main__.py").exists()
    }
    assert named - runnable == set()
