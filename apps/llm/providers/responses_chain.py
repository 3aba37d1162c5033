"""Whether a prompt continues a response, and with what: the rule by which only new items are sent. Pure.

A delta is sent only if every other field equals the last request's and the new input extends what the model has read
and said. What was given for an earlier turn alone stays in the chain; it is superseded by words, not removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.llm.providers.responses_request import Item, Prompt, withdrawal

# Superseded articles that may stand in a chain, in UTF-8 bytes: about 6,000 tokens. Beyond that the chain starts anew.
STALE_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Chain:
    """A response that can be continued. `items` is all that the model has read and said up to its end."""

    response_id: str
    fields: bytes
    items: tuple[Item, ...]
    prepared: bool = False  # nothing was said yet: the server was only made to read


@dataclass(frozen=True, slots=True)
class Sending:
    """What to send. `whole` is what the model will then have read, whichever way."""

    items: tuple[Item, ...]
    whole: tuple[Item, ...]
    previous: str = ""


def sending(prompt: Prompt, chain: Chain | None) -> Sending:
    """Only the new items behind `chain` where that is the same conversation, else everything."""
    new = continued(prompt, chain) if chain is not None else None
    if chain is None or not new:
        return Sending(prompt.items, prompt.items)
    return Sending(new, (*chain.items, *new), chain.response_id)


def continued(prompt: Prompt, chain: Chain) -> tuple[Item, ...] | None:
    """The items that `prompt` has beyond `chain`, None when it does not extend it."""
    if prompt.fields != chain.fields:
        return None
    known, at = chain.items, 0
    stale = 0
    for number, item in enumerate(prompt.items):
        while at < len(known) and known[at] != item and known[at].passing:
            stale += len(known[at].message.json)
            at += 1
        if at == len(known):
            return _superseding(prompt.items[number:], known) if stale <= STALE_BYTES else None
        if known[at] != item:
            return None
        at += 1
    return () if at == len(known) else None


def _superseding(new: tuple[Item, ...], known: tuple[Item, ...]) -> tuple[Item, ...]:
    """Says that earlier articles no longer hold, when the new items do not say so themselves."""
    last_given = next((item for item in reversed(known) if item.passing), None)
    if last_given is None or last_given == withdrawal() or any(item.passing for item in new):
        return new
    return (*new[:-1], withdrawal(), new[-1])
