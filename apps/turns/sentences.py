"""The few sentences the service itself says in a conversation, in each language."""

from __future__ import annotations

from typing import Final

NO_MODEL: Final = {
    "en": "Sorry, I can't answer right now. You can try again in a moment, or talk to a person.",
    "zh": "抱歉，我现在无法回答。您可以稍后再试，或转接人工客服。",
}

REPLY_SUBJECT: Final = {"en": "A reply from {site}", "zh": "{site} 的回复"}

REPLY_FOOTER: Final = {
    "en": "To answer, open the chat on {site} again.",
    "zh": "如需回复，请再次打开 {site} 的聊天窗口。",
}


def sentence(choices: dict[str, str], locale: str) -> str:
    """The sentence in the conversation's language; English where there is none."""
    return choices["zh" if locale.lower().startswith("zh") else "en"]
