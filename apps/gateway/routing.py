"""Paths of the sockets."""

from __future__ import annotations

from channels.routing import URLRouter
from django.urls import path

from apps.gateway.agent import AgentSocket
from apps.gateway.customer import CustomerSocket
from apps.gateway.unknown import unknown_path

sockets = URLRouter(
    [
        path("ws/customer", CustomerSocket.as_asgi()),
        path("ws/agent", AgentSocket.as_asgi()),
        path("<path:rest>", unknown_path),  # type: ignore[arg-type]  # an ASGI application, as URLRouter takes
    ]
)
