"""Qwen on Alibaba Cloud's Model Studio (DashScope). Source: help.aliyun.com/model-studio/qwen-api-via-openai-responses.

Its Responses API ignored `instructions` for long, so the policy goes as the first item; a header switches the cache of
a chained conversation on.
"""

from __future__ import annotations

from apps.llm.providers.quirks import Quirks

QUIRKS = Quirks(
    "qwen", "Qwen (DashScope)",
    hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "maas.aliyuncs.com"),
    instructions_field=False, headers=(("x-dashscope-session-cache", "enable"),),
)  # fmt: skip
