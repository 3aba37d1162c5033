"""The one error of the set-up: its text is the line a person reads, saying what to do."""


class SetupError(Exception):
    """What is wrong and what to do about it, in one line; `tail` shows the end of a log below it."""

    def __init__(self, line: str, tail: str = "") -> None:
        super().__init__(line)
        self.tail = tail
