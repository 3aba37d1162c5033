"""What the server shows of a message's Markdown: the same as the browser's modules, and never anything that acts."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from typing import Any

import pytest

from apps.conversations.markup import to_html, to_text
from apps.conversations.markup_inlines import MAX_LENGTH, safe_href
from chatsvc.environment import BASE_DIR

GOLDEN: dict[str, Any] = json.loads((BASE_DIR / "tests/js/markdown.json").read_text(encoding="utf-8"))
SOURCES: list[str] = [case["source"] for case in (*GOLDEN["cases"], *GOLDEN["hostile"])]
ELEMENTS = frozenset(
    "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split()  # noqa: SIM905 - reads better
)
ATTRIBUTES = {("ol", "start"), ("div", "class"), ("th", "class"), ("td", "class")} | {
    ("a", name) for name in ("href", "target", "rel")
}

# Pieces of what assistants write. Lines that CommonMark and our servers read differently are not among them:
# a bar at the head of a quote, and code indented under a lazy line.
WORDS = """
parcel|order 1042|**ships today**|*soon*|`make run`|~~10 €~~ 8 €|重要：**七天**内|👩‍👩‍👧|2 * 3|snake_case
[policy](https://a.example/returns)|https://a.example/b_c?d=e.|<mia@a.example>|[x](javascript:y)|[1]|(https://b.example)
"""
FORMS = (
    "# {}",
    "- {}\n- {}",
    "- {}\n  - {}\n\n  {}",
    "3. {}\n4. {}",
    "> {}\n> {}",
    "```\n{}\n\n{}\n```",
    "| {} | {} |\n|:--|--:|\n| {} | x |",
    "{}  \n{}",
    "---",
    "{}",
)
ADDRESSES = {
    "https://a.example": True,
    "HTTP://A.example/ä?b#c": True,
    "mailto:a@a.example": True,
    "": False,
    "//a.example": False,
    "https://": False,
    "https://a b": False,
    "javascript:https://a.example": False,
    "https://a.example/\u202eb": False,
    "https://a|b": False,
    "mailto:": False,
    "\x01https://a.example": False,
}
SLOW = (
    "*a ",
    "*_",
    "[",
    "[a](",
    "![[",
    "`a",
    "<",
    "> ",
    "- ",
    "- a\n",
    "> a\n",
    "|a\n|-\n",
    "```\n",
    "#",
    "https://a.b(",
)


class Reader(HTMLParser):
    """Which elements and attributes there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


def assert_safe(source: str) -> None:
    for tag, attributes in Reader(to_html(source)).found:
        assert tag in ELEMENTS, source
        for name, value in attributes:
            assert (tag, name) in ATTRIBUTES, source
            assert name != "href" or re.match(r"(?:https?://[^/]|mailto:)[^\s\"<>]*\Z", value or "", re.I), (
                source
            )


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_a_message_is_shown_as_in_the_browser(case: dict[str, str]) -> None:
    assert to_html(case["source"]) == case["html"]


def test_hostile_text_is_shown_as_in_the_browser() -> None:
    assert {case["source"]: to_html(case["source"]) for case in GOLDEN["hostile"]} == {
        case["source"]: case["html"] for case in GOLDEN["hostile"]
    }


def test_the_golden_file_is_large_enough_to_mean_something() -> None:
    assert len(GOLDEN["cases"]) >= 40
    assert len(GOLDEN["hostile"]) >= 30


def test_whatever_is_written_only_harmless_elements_and_links_are_made() -> None:
    chance = random.Random(11)
    pieces = [piece for source in SOURCES for piece in re.findall(r"[\s\S]{1,9}", source)]
    for _ in range(400):
        assert_safe("".join(chance.choice(pieces) for _ in range(12)))


def test_documents_as_assistants_write_them_are_shown_as_in_the_browser() -> None:
    chance = random.Random(12)

    words = WORDS.strip().replace("\n", "|").split("|")

    def text() -> str:
        return " ".join(chance.choice(words) for _ in range(chance.randint(1, 4)))

    def line() -> str:
        return chance.choice(FORMS).format(text(), text(), text())

    sources = [chance.choice(["\n\n", "\n\n", "\n"]).join(line() for _ in range(5)) for _ in range(200)]
    assert [to_html(source) for source in sources] == shown_in_javascript(sources)


def shown_in_javascript(sources: list[str]) -> list[str]:
    script = """
        import { openPage } from "./tests/js/page.js";
        import { show } from "./static/js/wire/markdown.js";
        import { readFileSync } from "node:fs";
        const page = openPage();
        console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((source) => {
          const box = page.createElement("div");
          show(box, source);
          return box.innerHTML;
        })));
    """
    node = shutil.which("node")
    assert node, "node is a tool of the tests"
    done = subprocess.run(
        [node, "--input-type=module", "--eval", script],
        input=json.dumps(sources), cwd=BASE_DIR, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("piece", SLOW)
def test_text_made_to_be_slow_is_read_to_its_end(piece: str) -> None:
    text = piece * (8_000 // len(piece)) + "x"
    assert len(Reader(to_html(text)).found) <= len(text)


def test_a_block_longer_than_any_message_is_shown_as_it_was_written() -> None:
    line = f"**{'a' * MAX_LENGTH}**"
    assert to_html(f"{line}\n{line}") == f"<p>{line}<br>{line}</p>"


def test_emphasis_inside_emphasis_has_an_end() -> None:
    assert to_html("*a " * 60 + "b" + "*" * 60).count("<em>") == 16


def test_quotes_and_lists_too_deep_lose_no_word() -> None:
    assert "x" in to_html("> " * 300 + "x")
    assert "x" in to_html("- " * 300 + "x")


@pytest.mark.parametrize(("address", "opened"), ADDRESSES.items())
def test_only_addresses_that_we_open_are_links(address: str, opened: bool) -> None:
    assert safe_href(address) == (address if opened else None)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("It is **blue**,\nsee [the list](https://example.com/).", "It is blue, see the list."),
        ("# Boots\n\n- worn\n- new", "Boots worn new"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a b 1 2"),
        ("<b>5 < 6</b> & `x > y`", "<b>5 < 6</b> & x > y"),
        ("**10**`42`\n\n---\n> ok", "1042 ok"),
        ("**cut off in", "**cut off in"),
        ("", ""),
    ],
)
def test_a_line_of_a_list_holds_the_words_without_their_marks(source: str, words: str) -> None:
    assert to_text(source) == words
