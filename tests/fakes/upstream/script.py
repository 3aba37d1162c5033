"""What the model says, as steps that no API or transport has shaped yet."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec


class Echo(msgspec.Struct, frozen=True, tag="echo", forbid_unknown_fields=True):
    """Answers from the prompt: quotes the lines that have most in common with the last question.

    Calls the tool `handoff`, where the request offers it, when the question asks for a person.
    """


class Text(msgspec.Struct, frozen=True, tag="text", forbid_unknown_fields=True):
    """Says exactly this, after having thought `reasoning`."""

    text: str
    reasoning: str = ""


class Filler(msgspec.Struct, frozen=True, tag="filler", forbid_unknown_fields=True):
    """So many tokens, for measurements: the first sentence of the articles in the prompt, then seeded chatter."""

    tokens: int


class ToolCall(msgspec.Struct, frozen=True, tag="tool", forbid_unknown_fields=True):
    """Calls a function, its arguments (JSON text) in `pieces`, after having said `text`."""

    name: str = "handoff"
    arguments: str = '{"reason": "The customer asks for a person."}'
    pieces: int = 5
    text: str = ""


Script: TypeAlias = Echo | Text | Filler | ToolCall


def words(count: int) -> str:
    """So many words for a `Text`, no two alike: as long as a test needs an answer to be."""
    return " ".join(f"word{n}" for n in range(count))


@dataclass(frozen=True, slots=True)
class Thought:
    """One token of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Word:
    """One token of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """One token of a call's arguments."""

    text: str


Step: TypeAlias = Thought | Word | CallStarted | CallArguments


@dataclass(frozen=True, slots=True)
class Reply:
    """The steps in order and why they end: stop, length or tool_calls."""

    steps: tuple[Step, ...]
    finish: str

    @property
    def text(self) -> str:
        return "".join(step.text for step in self.steps if isinstance(step, Word))

    @property
    def reasoning(self) -> str:
        return "".join(step.text for step in self.steps if isinstance(step, Thought))

    @property
    def tokens(self) -> int:
        return sum(is_token(step) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a script may look at."""

    question: str
    lines: tuple[str, ...]
    tools: tuple[str, ...] = ()
    max_tokens: int | None = None


def compose(script: Script, prompt: Prompt, rng: random.Random) -> Reply:
    """The same script, prompt and seed give the same reply."""
    steps = tuple(_steps(script, prompt, rng))
    called = any(isinstance(step, CallStarted) for step in steps)
    reply = Reply(steps, "tool_calls" if called else "stop")
    if prompt.max_tokens is not None and reply.tokens > prompt.max_tokens:
        return Reply(tuple(_first_tokens(steps, prompt.max_tokens)), "length")
    return reply


def is_token(step: Step) -> bool:
    """Whether the step costs an output token (a call's name comes free with its first argument)."""
    return not isinstance(step, CallStarted)


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af\u3000-\u303f\uff00-\uffef"
_TOKEN = re.compile(rf"[{_HAN}]|\s?[^\s{_HAN}]{{1,5}}|\s")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|$)")


def tokenize(text: str) -> list[str]:
    """Roughly as a real tokenizer cuts: a Han character or up to five others. Joined again it is `text`."""
    return _TOKEN.findall(text)


def _steps(script: Script, prompt: Prompt, rng: random.Random) -> Iterator[Step]:
    match script:
        case Echo():
            yield from _steps(_echo(prompt), prompt, rng)
        case Text():
            yield from map(Thought, tokenize(script.reasoning))
            yield from map(Word, tokenize(script.text))
        case Filler():
            quoted = tokenize(_first_sentence(prompt))[: script.tokens]
            yield from map(Word, quoted)
            yield from (Word(rng.choice(_CHATTER)) for _ in range(script.tokens - len(quoted)))
        case ToolCall():
            yield from map(Word, tokenize(script.text))
            yield CallStarted(f"call_{rng.getrandbits(64):016x}", script.name)
            yield from map(CallArguments, _pieces(script.arguments, script.pieces))


def _first_sentence(prompt: Prompt) -> str:
    """Of the first article, without which no answer counts as one that others may be given."""
    if "<articles>" not in prompt.lines:
        return ""
    told = prompt.lines[prompt.lines.index("<articles>") + 1 :]
    line = next((line for line in told if line.strip() and not line.startswith(("#", "<"))), "")
    sentence = _SENTENCE.match(line)
    return f"{sentence.group()} " if sentence else ""


def _first_tokens(steps: tuple[Step, ...], limit: int) -> Iterator[Step]:
    for step in steps:
        limit -= is_token(step)
        if limit < 0:
            return
        yield step


def _pieces(text: str, count: int) -> list[str]:
    """Cut anywhere, so inside escapes and names too."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


_CHATTER = (" the", " order", " is", " on", " its", " way", " and", " will", " reach", " you", " soon", ".")
_PERSON = re.compile(r"\b(human|person|agent|someone|representative)\b|人工|真人|客服", re.IGNORECASE)
_WORDS = re.compile(rf"\d+|[a-z]{{3,}}|[{_HAN}]{{2}}")
_QUOTED_LINES = 2


def _echo(prompt: Prompt) -> Script:
    if "handoff" in prompt.tools and _PERSON.search(prompt.question):
        return ToolCall()
    facts = _closest(prompt.question, prompt.lines)
    chinese = re.search(rf"[{_HAN}]", prompt.question) is not None
    if not facts:
        return Text("我没有这方面的资料。" if chinese else "I have nothing on that.")
    return Text(("根据记录：" if chinese else "From what I have: ") + " / ".join(facts))


def _closest(question: str, lines: tuple[str, ...]) -> list[str]:
    """Lines by what they share with the question; a number counts for more than any word."""
    asked = _features(question)
    scored = [
        (sum(10 if word.isdigit() else 1 for word in asked & _features(line)), -at, line)
        for at, line in enumerate(dict.fromkeys(lines))
        if line != question
    ]
    best = sorted((entry for entry in scored if entry[0] > 0), reverse=True)
    return [line for score, _, line in best[:_QUOTED_LINES] if 2 * score > best[0][0]]


def _features(text: str) -> set[str]:
    lowered = text.lower()
    han = re.findall(rf"(?=([{_HAN}]{{2}}))", lowered)
    return set(_WORDS.findall(lowered)) | set(han)
