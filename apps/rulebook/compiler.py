"""Turns a condition into something that can be asked, or says what is wrong with it. Pure: CEL, no Django.

Refused are what a rule does not need and what could hold the loop: loops over lists, unknown names, and
regular expressions that are dear to compile, which the library does again at every evaluation.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cel

from apps.rulebook.lexer import Token, calls, place, split, tokens_of, without_brackets
from apps.rulebook.vocabulary import FUNCTIONS, VARIABLES, Value, samples, variables

MAX_CONDITION_CHARACTERS = 1_000
MAX_PATTERN_CHARACTERS = 80

_NOT_PLAIN = re.compile(r"[\\.^$*+?()\[\]{}]")  # of a pattern: it is more than words and bars
_LOOPS = frozenset({"map", "filter", "all", "exists", "exists_one"})
# What an evaluation may raise (seen in the library: KeyError, IndexError, ZeroDivisionError, TypeError …).
EvaluationError = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
# What it raises where an operator or a method does not fit its value, as with the null of an unknown attribute.
_UNFIT = (TypeError, RuntimeError)


class RefusedCondition(Exception):
    """Why a condition is refused, in words for the person who wrote it; `at` is the character it is about."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition. `trigger`: words of which one must be in the case-folded text; None if any text may do."""

    program: cel.Program
    trigger: frozenset[str] | None
    attributes: frozenset[str]

    def holds(self, context: cel.Context, known: Mapping[str, Value]) -> bool:
        """Whether it is true. A comparison with an attribute that nobody told is not. Raises `EvaluationError`."""
        try:
            return self.program.execute(context) is True
        except _UNFIT:
            if any(known[name] is None for name in self.attributes):
                return False
            raise


def compile_condition(source: str) -> Condition:
    """Compiles and tries the condition. Raises `RefusedCondition`. About 1 ms."""
    if len(source) > MAX_CONDITION_CHARACTERS:
        raise RefusedCondition(f"The condition is longer than {MAX_CONDITION_CHARACTERS} characters.")
    if not source.strip():
        raise RefusedCondition("The condition is empty. Write true for a rule that always applies.")
    tokens = tokens_of(source)
    _refuse_loops(source, tokens)
    program = _parsed(source)
    _refuse_unknown(source, tokens, program)
    _refuse_dear_patterns(source, tokens)
    condition = Condition(program, _trigger(tokens), _attributes(tokens))
    _try(condition, [_value(token) for token in tokens if token.kind == "string"])
    return condition


def _refuse_loops(source: str, tokens: Sequence[Token]) -> None:
    for name, _ in calls(tokens):
        if name.text in _LOOPS:
            raise _refused(
                source, name, f'.{name.text}() is not allowed; for orders use "delivered" in order_statuses'
            )
        if name.text == "has":
            raise _refused(source, name, "has() is not needed: an unknown attribute is null")


def _parsed(source: str) -> cel.Program:
    try:
        return cel.compile(source)
    except ValueError as error:
        raise _syntax_error(source, str(error)) from error


def _syntax_error(source: str, message: str) -> RefusedCondition:
    found = re.search(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)", message)
    if not found:
        return RefusedCondition("The condition cannot be read.")
    lines = source.splitlines(keepends=True)
    at = min(sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1, len(source))
    return RefusedCondition(f"At {place(source, at)}: {_hint(source, at, found[3])}", at)


def _hint(source: str, at: int, said: str) -> str:
    rest = source[at:].lstrip()
    if not rest:
        return "something is missing at the end"
    if re.match(r"=[^=]", rest):
        return "write == to compare"
    if re.match(r"(and|or|not)\b", rest, re.IGNORECASE):
        return "write && for and, || for or, ! for not"
    if rest[0] in "“”‘’":
        return "use straight quotes: \" or '"
    if rest[0] in "\"'" and "token recognition" in said:
        return "this text has no closing quote"
    if "ecursion" in said or "nesting" in said:
        return "too many brackets inside each other"
    return f"“{rest[:20]}” is not expected here"


def _refuse_unknown(source: str, tokens: Sequence[Token], program: cel.Program) -> None:
    called = {name.text for name, _ in calls(tokens)}
    for name in called - FUNCTIONS:
        raise _unknown(source, tokens, name, FUNCTIONS, "function")
    for name in program.variables():
        if name not in VARIABLES:
            raise _unknown(source, tokens, name, VARIABLES, "name")


def _unknown(
    source: str,
    tokens: Sequence[Token],
    name: str,
    allowed: Sequence[str] | Mapping[str, str] | frozenset[str],
    kind: str,
) -> RefusedCondition:
    near = difflib.get_close_matches(name, list(allowed), 1)
    advice = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(allowed))}"
    token = next((token for token in tokens if token.text == name), tokens[0])
    return _refused(source, token, f"no {kind} is called {name}; {advice}")


def _refuse_dear_patterns(source: str, tokens: Sequence[Token]) -> None:
    for name, inside in calls(tokens):
        if name.text != "matches":
            continue
        if len(inside) != 1 or inside[0].kind != "string":
            raise _refused(source, name, "matches() takes one text in quotes")
        pattern = _value(inside[0])
        if len(pattern) > MAX_PATTERN_CHARACTERS:
            raise _refused(source, inside[0], f"a pattern may have {MAX_PATTERN_CHARACTERS} characters")
        if re.search(r"(?<!\\)(\\\\)*\{", pattern) or len(re.findall(r"\\[wWpPbB]", pattern)) > 3:
            raise _refused(
                source, inside[0], "this pattern is too slow: use * or + instead of {…}, and few \\w \\b \\p"
            )
        _refuse_broken_pattern(source, inside[0])


def _refuse_broken_pattern(source: str, literal: Token) -> None:
    try:
        cel.evaluate(f'"".matches({literal.text})')
    except EvaluationError as error:
        reason = next((line for line in str(error).splitlines() if line.startswith("error: ")), "")
        reason = reason.removeprefix("error: ").partition(".")[0]
        raise _refused(source, literal, f"this pattern cannot be read: {reason or error}") from error


def _try(condition: Condition, literals: Sequence[str]) -> None:
    """Evaluates on sample customers, so that a wrong type or pattern is found now and not in a conversation."""
    for sample in samples(literals):
        values = variables(sample, condition.attributes)
        try:
            result = condition.program.execute(cel.Context(values))
        except _UNFIT as error:
            if not condition.attributes:
                raise RefusedCondition(
                    'Values of different kinds are compared or joined: texts need quotes ("gold"), numbers none; '
                    'for a word in the message write text_lower.contains("refund")'
                ) from error
            continue
        except EvaluationError as error:
            raise RefusedCondition(_failure(error)) from error
        if not isinstance(result, bool) and not (result is None and condition.attributes):
            raise RefusedCondition('The condition must be true or false, such as tier == "gold".')


def _failure(error: Exception) -> str:
    match error:
        case IndexError():
            return "A customer may have no orders: write order_count > 0 && orders[0].status == …"
        case KeyError():
            return f"Orders have no field {error}: {VARIABLES['orders'].partition(': ')[2]}"
        case ZeroDivisionError():
            return "This divides by zero for some customers."
        case _:
            return f"This fails when it is tried: {error}"


def _refused(source: str, token: Token, message: str) -> RefusedCondition:
    return RefusedCondition(f"At {place(source, token.at)}: {message}", token.at)


def _trigger(tokens: Sequence[Token]) -> frozenset[str] | None:
    """Words of which at least one must occur for the condition to be true, from what is plain."""
    tokens = without_brackets(tokens)
    if any(len(split(tokens, mark)) > 1 for mark in "?:"):
        return None
    alternatives = split(tokens, "||")
    if len(alternatives) > 1:
        needed = [_trigger(part) for part in alternatives]
        return None if None in needed else frozenset().union(*(words for words in needed if words))
    conjuncts = split(tokens, "&&")
    if len(conjuncts) > 1:
        return min((words for part in conjuncts if (words := _trigger(part))), key=len, default=None)
    return _contained(tokens)


def _contained(tokens: Sequence[Token]) -> frozenset[str] | None:
    """The words of text.contains("word"), and of text.matches("word|word") where the pattern is that plain."""
    texts = [token.text for token in tokens]
    if len(tokens) != 6 or texts[0] not in ("text", "text_lower") or texts[1] != "." or texts[3] != "(":
        return None
    if tokens[4].kind != "string" or texts[5] != ")":
        return None
    argument = _value(tokens[4])
    if texts[2] == "contains":
        words = [argument]
    elif texts[2] == "matches" and not _NOT_PLAIN.search(argument):
        words = argument.split("|")
    else:
        return None
    return frozenset(word.casefold() for word in words) if all(words) else None


def _attributes(tokens: Sequence[Token]) -> frozenset[str]:
    """The names in attributes.name and attributes["name"]."""
    names = set()
    for at in range(len(tokens) - 2):
        if tokens[at].text == "attributes":
            mark, name = tokens[at + 1], tokens[at + 2]
            if mark.text == "." and name.kind == "name":
                names.add(name.text)
            if mark.text == "[" and name.kind == "string":
                names.add(_value(name))
    return frozenset(names)


def _value(token: Token) -> str:
    """A string literal's text, by CEL's own rules for escapes."""
    value = cel.evaluate(token.text)
    return value if isinstance(value, str) else str(value)
