"""What travels down a line over plain HTTP, as server-sent events. Pure."""

from __future__ import annotations

import json

CONTENT_TYPE = "text/event-stream"
# Proxies that keep a response back until they have seen enough of it have seen enough of this.
PADDING = ":" + " " * 2_046 + "\n\n"
HEARTBEAT = ":\n\n"


def opened_event(line: str) -> str:
    """The first event: the id that the client's POSTs name."""
    return f"event: opened\ndata: {json.dumps({'line': line})}\n\n"


def frame_event(text: str) -> str:
    """A frame of `chatsvc.v1.json`, which has no line ends in it."""
    return f"data: {text}\n\n"


def closed_event(code: int, reason: str) -> str:
    """The last event: what a WebSocket's close would have said."""
    return f"event: closed\ndata: {json.dumps({'code': code, 'reason': reason})}\n\n"
