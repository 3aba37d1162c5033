"""The whole of `make run` under test: the supervisor with its embedded services and the demo shop."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.processes import Deployment, RunningProcess, Web, own_port


class Demo(RunningProcess):
    """`python -m chatsvc.embedded.up` in a folder of its own, ready. `logins` maps a name to its password."""

    def __init__(self, folder: Path) -> None:
        self.var_dir = folder
        self.port = own_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ws = f"ws://127.0.0.1:{self.port}"
        self._second_port = own_port()
        self._deployment_variables = {
            "CHATSVC_DEMO": "1",
            "CHATSVC_BIND": f"127.0.0.1:{self.port}",
            # The second process's pages are another origin, which may show the widget as well.
            "TRUSTED_ORIGINS": f"http://127.0.0.1:{self._second_port}",
        }
        # Empty means embedded.
        embedded = {"CHATSVC_VAR": str(folder), "DATABASE_URL": "", "REDIS_URL": ""}
        command = [sys.executable, "-m", "chatsvc.embedded.up"]
        self._starts = 1
        super().__init__(command, {**self._deployment_variables, **embedded}, folder.with_suffix(".output"))
        self.wait_ready()

    def start_again(self) -> None:
        """After its end, on the same data."""
        self._starts += 1
        self.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        self.wait_until(lambda: self.output().count("chatsvc is ready") == self._starts)

    @property
    def logins(self) -> dict[str, str]:
        read: dict[str, str] = json.loads((self.var_dir / "demo-logins.json").read_text(encoding="utf-8"))
        return read

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.var_dir / 'chatsvc.sqlite3'}"

    def second_web(self) -> Web:
        """One more web process on the same database and Redis; the caller ends it."""
        deployment = Deployment(self.database_url, f"unix://{self.var_dir / 'redis.sock'}", self.var_dir)
        return Web(deployment, "second-web", port=self._second_port, **self._deployment_variables)
