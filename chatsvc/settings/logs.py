"""What goes to the log, and in how many lines."""

from __future__ import annotations

import logging
from typing import Any, Final

READY_PATH: Final = "/readyz"


def one_warning(record: logging.LogRecord) -> bool:
    """A filter: strangers knock under any name they like, so this says which name and not where in our code."""
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    record.exc_info = record.exc_text = None
    return True


def said_not_broken(record: logging.LogRecord) -> bool:
    """A filter: that it is not ready is what a process answers at `/readyz`, balancers mostly, and no error."""
    request = getattr(record, "request", None)
    return request is None or request.path != READY_PATH


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"one_warning": {"()": lambda: one_warning}, "said": {"()": lambda: said_not_broken}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "django.request": {"filters": ["said"]},
        "django.security.DisallowedHost": {"filters": ["one_warning"]},
    },
}
