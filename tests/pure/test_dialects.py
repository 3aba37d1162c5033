"""The known providers: found by their files, told by their addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.llm.providers import dialects
from apps.llm.providers.dialects import BY_NAME, GENERIC, choices, quirks_of


def test_each_file_is_a_provider_of_its_name_and_nothing_else_is_listed() -> None:
    files = {file.stem for file in Path(dialects.__file__).parent.glob("*.py")} - {"__init__"}
    assert BY_NAME.keys() == files | {GENERIC.name}
    assert [name for name, _ in choices()] == ["auto", *BY_NAME]


@pytest.mark.parametrize(
    ("dialect", "url", "name"),
    [
        ("auto", "https://api.openai.com/v1", "openai"), ("auto", "https://api.deepseek.com", "deepseek"),
        ("auto", "http://localhost:11434/v1", "ollama"), ("auto", "https://api.x.ai/v1", "xai"),
        ("auto", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("auto", "https://api.openai.com.evil.example/v1", "generic"), ("vllm", "https://gpu.example/v1", "vllm"),
        ("unheard-of", "https://gpu.example/v1", "generic"), ("llamacpp", "http://127.0.0.1:8080/v1", "llamacpp"),
    ],
)  # fmt: skip
def test_a_dialect_is_told_by_its_address_or_chosen(dialect: str, url: str, name: str) -> None:
    assert quirks_of(dialect, url).name == name
