"""The generated `.env`: what an installation may set, what it means, and no fixed secret."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from chatsvc.embedded.problems import SetupError

_TEMPLATE = """\
# Settings of this installation. Written once by `make run`; yours to edit; not in version control.
# A variable of the same name in the environment wins over this file.

# Signs sessions and seals stored secrets. Changing it logs everybody out and makes sealed keys unreadable.
SECRET_KEY={secret_key}

# 1 seeds the demo shop Lantern with its log-ins. Set 0 in production, before the first start.
CHATSVC_DEMO=1

# Where the web process listens, HOST:PORT.
CHATSVC_BIND=127.0.0.1:8000

# Host names this server answers to, comma-separated.
ALLOWED_HOSTS=localhost,127.0.0.1,[::1]

# Origins with scheme that may log in and open the agents' socket, where a proxy changes Host: https://chat.example.com
TRUSTED_ORIGINS=

# 1 where a proxy in front ends TLS and sets X-Forwarded-Proto and X-Forwarded-For.
BEHIND_TLS_PROXY=0

# Empty: SQLite in var/. Production: postgresql://user:password@host:5432/name
DATABASE_URL=

# Empty: an embedded Redis in var/. Production: redis://host:6379/0 (Redis or Valkey, 7 or later)
REDIS_URL=

# Any OpenAI-compatible endpoint, such as https://api.example.com/v1. Empty: the builtin assistant answers.
LLM_BASE_URL=
LLM_API_KEY=
LLM_MODEL=
# A PEM file of private authorities that model servers may be signed by.
LLM_CA_FILE=

# Replies to customers who left an address go through this mail server. Empty: into files in var/mail.
MAIL_HOST=
MAIL_PORT=587
MAIL_USER=
MAIL_PASSWORD=
MAIL_FROM=support@localhost

# full waits for the disk at every commit; normal survives a crash of the programs, but not of the power.
DURABILITY=normal
"""


def ensure_env_file(path: Path) -> bool:
    """Writes `.env` with a new random secret, readable by its owner only, unless it exists. True if written."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise SetupError(f"Cannot write {path} ({error.strerror}): make {path.parent} yours.") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_TEMPLATE.format(secret_key=secrets.token_urlsafe(48)))
    return True
