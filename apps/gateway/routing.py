"""Paths of the sockets."""

from __future__ import annotations

from channels.routing import URLRouter
from django.urls import path, re_path

from apps.gateway.agent import AgentPeer
from apps.gateway.customer import CustomerPeer
from apps.gateway.socket import Socket
from apps.gateway.unknown import unknown_path

sockets = URLRouter(
    [
        path("ws/customer", Socket.as_asgi(peer=CustomerPeer)),
        path("ws/agent", Socket.as_asgi(peer=AgentPeer)),
        re_path("", unknown_path),  # type: ignore[arg-type]  # an ASGI application, as URLRouter takes
    ]
)
