"""The ASGI application: Django for HTTP, the gateway for sockets."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

application = get_asgi_application()  # loads the apps; the imports below need them

from apps.gateway.routing import sockets  # noqa: E402
from chatsvc.owner import ProcessOwner  # noqa: E402
from chatsvc.proxy import behind_tls_proxy  # noqa: E402


def build_application(owner: ProcessOwner) -> Any:
    """The application of one process. Sockets find its connections in their scope, health pages its office."""

    async def with_connections(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await sockets({**scope, "connections": owner.connections}, receive, send)

    async def http(scope: dict[str, Any], receive: Any, send: Any) -> None:
        lines = owner.http_lines
        pages = lines if lines.takes(scope["path"]) else application
        await pages({**scope, "office": owner.office}, receive, send)

    router = ProtocolTypeRouter({"http": http, "websocket": with_connections})
    return behind_tls_proxy(router) if settings.BEHIND_TLS_PROXY else router
