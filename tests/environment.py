"""A pytest plugin, loaded before Django's settings: tests see these values, never a developer's `.env`.

`DATABASE_URL` and `REDIS_URL` may come from outside; else SQLite, and a Redis started on use, for each worker of
pytest-xdist its own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from chatsvc.embedded.prepare import compile_catalogs
from chatsvc.environment import BASE_DIR

# Short, because a socket's path has 107 bytes at most.
_PREFIX = "chatsvc-test-"
VAR_DIR = Path(tempfile.mkdtemp(prefix=_PREFIX))
atexit.register(shutil.rmtree, VAR_DIR, ignore_errors=True)
# The folder of a run: its workers inherit the name of the first process's.
RUN_DIR = Path(os.environ.setdefault("CHATSVC_TESTS_RUN", str(VAR_DIR)))

os.environ.update(
    SECRET_KEY="only-for-tests-0123456789-0123456789-0123456789",
    CHATSVC_VAR=str(VAR_DIR),
    CHATSVC_DEMO="0",
    CHATSVC_BIND="127.0.0.1:8000",
    ALLOWED_HOSTS="localhost,127.0.0.1,testserver",
    TRUSTED_ORIGINS="",
    BEHIND_TLS_PROXY="0",
    LLM_BASE_URL="",
    LLM_API_KEY="",
    LLM_MODEL="",
    LLM_CA_FILE="",
    MAIL_HOST="",
    MAIL_PORT="587",
    MAIL_USER="",
    MAIL_PASSWORD="",
    MAIL_FROM="support@localhost",
    DURABILITY="normal",
)
for _name, _own in (
    ("DATABASE_URL", f"sqlite:///{VAR_DIR / 'chatsvc.sqlite3'}"),
    ("REDIS_URL", f"unix://{VAR_DIR / 'redis.sock'}"),
):
    # What lies in such a folder was not given: a worker inherits it from the process that started it.
    if not os.environ.get(_name) or _PREFIX in os.environ[_name]:
        os.environ[_name] = _own

# A fresh checkout has no compiled catalogs, and pages are tested in both languages.
compile_catalogs(BASE_DIR / "locale")
