"""Qwen on Alibaba Cloud's Model Studio (DashScope). Source: help.aliyun.com/model-studio, the OpenAI-compatible API."""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "qwen", "Qwen (DashScope)",
    hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "maas.aliyuncs.com"),
)  # fmt: skip
