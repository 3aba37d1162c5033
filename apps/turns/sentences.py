"""The few sentences the service itself says in a conversation, in each language."""

from __future__ import annotations

from typing import Final

from apps.engine.languages import Language, language_of

NO_MODEL: Final = {
    Language.ENGLISH: "Sorry, I can't answer right now. You can try again in a moment, or talk to a person.",
    Language.CHINESE: "抱歉，我现在无法回答。您可以稍后再试，或转接人工客服。",
}

REPLY_SUBJECT: Final = {Language.ENGLISH: "A reply from {site}", Language.CHINESE: "{site} 的回复"}

REPLY_FOOTER: Final = {
    Language.ENGLISH: "To answer, open the chat on {site} again.",
    Language.CHINESE: "如需回复，请再次打开 {site} 的聊天窗口。",
}


def sentence(choices: dict[Language, str], locale: str) -> str:
    """The sentence in the conversation's language; English where there is none."""
    return choices[language_of(locale)]
