"""The request of Chat Completions, as bytes: stable in its order, so that equal prefixes stay equal. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.types import ModelRequest
from apps.llm.providers.handoff import DESCRIPTION, HANDOFF, parameters
from apps.llm.spec import EndpointSpec


def headers(spec: EndpointSpec, request: ModelRequest) -> dict[str, str]:
    """Identity coding: a compressing proxy would hold tokens back."""
    made = {"accept": "text/event-stream", "accept-encoding": "identity", "content-type": "application/json"}
    if spec.quirks.cache_key_header and request.cache_key:
        made[spec.quirks.cache_key_header] = request.cache_key
    return made


def body(spec: EndpointSpec, request: ModelRequest) -> bytes:
    """JSON with model and tools first and the volatile messages last."""
    quirks = spec.quirks
    fields: dict[str, Any] = {"model": spec.model, "tools": [_handoff_tool(request.teams)], "stream": True}
    if quirks.usage_in_stream:
        fields["stream_options"] = {"include_usage": True}
        if quirks.quiet_padding:
            fields["stream_options"]["include_obfuscation"] = False
    fields[quirks.limit_field] = min(spec.max_output_tokens, request.max_output_tokens)
    if quirks.cache_key_field and request.cache_key:
        fields[quirks.cache_key_field] = request.cache_key
    fields.update(msgspec.json.decode(spec.extra_body))
    fields["messages"] = [msgspec.Raw(message.json) for message in request.messages]
    return msgspec.json.encode(fields)


def _handoff_tool(teams: tuple[str, ...]) -> dict[str, Any]:
    function = {"name": HANDOFF, "description": DESCRIPTION, "parameters": parameters(teams)}
    return {"type": "function", "function": function}
