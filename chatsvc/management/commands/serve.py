"""`manage.py serve`: one web process, with its owner."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatsvc.asgi import build_application
from chatsvc.environment import SettingError, parse_bind
from chatsvc.files import RESERVED, WANTED, TooFewFiles, raise_limit
from chatsvc.owner import ProcessOwner
from chatsvc.server import serve

logger = logging.getLogger(__name__)

DRAIN_S = 20.0


class Command(BaseCommand):
    help = "Serves HTTP and sockets until SIGTERM, then lets running turns finish."

    def add_arguments(self, parser: CommandParser) -> None:
        host, port = settings.ENVIRONMENT.bind_host, settings.ENVIRONMENT.bind_port
        parser.add_argument("--bind", default=f"{host}:{port}", help="HOST:PORT to listen on")
        parser.add_argument(
            "--drain-s", type=float, default=DRAIN_S, help="seconds for running turns to finish"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            host, port = parse_bind(options["bind"])
            files = raise_limit()
        except (SettingError, TooFewFiles) as error:
            raise CommandError(str(error)) from error
        if files < WANTED:
            logger.warning(
                "%d open files are allowed: room for %d connections. Set LimitNOFILE to %d for all that one carries",
                files,
                files - RESERVED,
                WANTED,
            )
        owner = ProcessOwner(room=files - RESERVED)
        sys.exit(serve(build_application(owner), owner, host, port, drain_s=options["drain_s"]))
