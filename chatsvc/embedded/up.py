"""`make run`: prepares a checkout, starts its services, says where they are, and ends them in order."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from chatsvc.embedded import preflight
from chatsvc.embedded.demo_logins import read_demo_logins
from chatsvc.embedded.demo_shop import ensure_demo_shop
from chatsvc.embedded.env_file import ensure_env_file
from chatsvc.embedded.local_model import MODEL
from chatsvc.embedded.logs import tail_of
from chatsvc.embedded.ports import answers_http, free_port
from chatsvc.embedded.problems import SetupError
from chatsvc.embedded.processes import Program, Supervisor, tied_to
from chatsvc.embedded.redis_server import answers, find_redis, redis_command
from chatsvc.environment import BASE_DIR, Environment, SettingError, read_environment

# Stages end from the highest: what takes work drains first, then what it asks, Redis last.
WORKING, ASKED, STORES = 2, 1, 0
DRAIN_S = 2.5
# After the answers the web process has to store, close and say goodbye, on a machine that may be busy: most runs end
# within 4 s, and only what hangs is killed.
WORKING_STOP_S, ASKED_STOP_S, STORES_STOP_S = 12.0, 2.0, 2.0
READY_S = 150.0


# What ends a run. A second one of the last two ends it at once; a terminal that is closed may tell its end twice.
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Somebody asked the supervisor to end."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """What this run is made of."""

    environment: Environment
    var_dir: Path
    redis_socket: Path | None  # None: REDIS_URL points elsewhere
    model_port: int | None  # None: not LLM=local

    def variables(self) -> dict[str, str]:
        """The children's environment."""
        variables = {**os.environ, "CHATSVC_VAR": str(self.var_dir), "PYTHONUNBUFFERED": "1"}
        if self.redis_socket:
            variables["REDIS_URL"] = f"unix://{self.redis_socket}"
        if self.model_port:
            variables.update(
                LLM_BASE_URL=f"http://127.0.0.1:{self.model_port}/v1", LLM_MODEL=MODEL, LLM_API_KEY=""
            )
        return variables


def main() -> int:
    parser = argparse.ArgumentParser(prog="make run")
    parser.add_argument("--llm", choices=("local",), help="stream from a llama.cpp server started here")
    local_model = parser.parse_args().llm == "local"
    _at_signals(ENDING, _stop)
    try:
        run(local_model=local_model)
    except Stopped:
        say("Ended.")
    except SetupError as error:
        say(str(error))
        say(error.tail)
        return 1
    except SettingError as error:
        say(str(error))
        return 1
    return 0


def run(*, local_model: bool) -> None:
    """Runs until stopped. Raises `Stopped`, `SetupError` or `SettingError`; by then every child has ended."""
    began_s = time.monotonic()
    if "SECRET_KEY" not in os.environ and ensure_env_file(BASE_DIR / ".env"):
        say("Wrote .env with a new SECRET_KEY")
    environment = read_environment()
    var_dir = environment.var_dir.resolve()
    preflight.make_writable(var_dir / "log")
    with preflight.lock(var_dir):
        preflight.raise_open_files()
        preflight.check_sqlite()
        preflight.check_port(environment.bind_host, environment.bind_port)
        checkout = Checkout(
            environment=environment,
            var_dir=var_dir,
            redis_socket=_embedded_redis_socket(environment, var_dir),
            model_port=free_port() if local_model else None,
        )
        supervisor = Supervisor(BASE_DIR, var_dir / "log", checkout.variables(), say)
        try:
            _start(checkout, supervisor)
            say(greeting(checkout, time.monotonic() - began_s))
            supervisor.watch()
        except Stopped:
            say(
                "\nEnding. Answers that are being given may finish, which takes a few seconds; Ctrl-C cuts them off."
            )
            raise
        finally:
            _at_signals(ENDING, signal.SIG_IGN)  # whatever has ended it: `stop` is not to be broken off
            _at_signals(ENDING[1:], lambda *_: supervisor.hurry())
            supervisor.stop()
            _at_signals(ENDING, signal.SIG_IGN)
            if supervisor.hurried:
                say("Ended at once: what was being answered was cut off.")


def _start(checkout: Checkout, supervisor: Supervisor) -> None:
    if checkout.redis_socket:
        redis = supervisor.start(_redis(checkout.redis_socket, checkout.var_dir))
        supervisor.wait_for(redis, READY_S)
    model = supervisor.start(_model(checkout.model_port)) if checkout.model_port else None
    if checkout.environment.demo:
        shop = ensure_demo_shop(checkout.var_dir)
        supervisor.start(_shop(shop.port, shop.key))
    say("Preparing the database and the static files")
    _run_to_end(checkout, "chatsvc.embedded.prepare", "Preparing the database and the static files failed")
    say("Starting the worker and the web server")
    supervisor.start(_worker(checkout.var_dir))
    supervisor.start(_python("beat", "celery", "-A", "chatsvc", "beat", "-l", "INFO", "--pidfile="))
    web = supervisor.start(_web(checkout.environment))
    if model:
        supervisor.wait_for(model, READY_S)
        _run_to_end(checkout, "chatsvc.embedded.warm_model", "The local model does not answer")
    supervisor.wait_for(web, READY_S)


def _run_to_end(checkout: Checkout, module: str, failure: str) -> None:
    """Runs one of our modules to its end. Raises `SetupError` beginning with `failure`, with its log's end."""
    log = checkout.var_dir / "log" / f"{module.rpartition('.')[2]}.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(  # noqa: S603 - our own modules
            [sys.executable, "-m", module],
            cwd=BASE_DIR,
            env=checkout.variables(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=tied_to(os.getpid()),
            check=False,
        )
    if done.returncode:
        raise SetupError(f"{failure}. The end of {log}:", tail_of(log))


_WORKER_NAME = "worker@embedded"
# Threads: a third of the memory of forked workers, and an end within a second. Time limits need forks: production.
_WORKER = ("--pool", "threads", "--concurrency", "2", "-l", "INFO", "--without-gossip", "--without-mingle")


def _worker(var_dir: Path) -> Program:
    command = (sys.executable, "-m", "celery", "-A", "chatsvc", "worker", "-n", _WORKER_NAME, *_WORKER)
    return Program("worker", command, WORKING, WORKING_STOP_S, sign=var_dir / "signs" / _WORKER_NAME)


def _redis(socket_path: Path, var_dir: Path) -> Program:
    folder = var_dir / "redis"
    folder.mkdir(mode=0o700, exist_ok=True)
    command = redis_command(find_redis(), folder, socket_path)
    return Program("redis", command, STORES, STORES_STOP_S, answers=lambda: answers(socket_path))


def _shop(port: int, key: str) -> Program:
    # One word, for a key may begin with a dash.
    command = (sys.executable, "-m", "tests.fakes.shop", "--port", str(port), f"--key={key}")
    return Program("shop", command, ASKED, ASKED_STOP_S)


def _model(port: int) -> Program:
    command = (sys.executable, "-m", "chatsvc.embedded.local_model", "--port", str(port))
    return Program(
        "model", command, ASKED, ASKED_STOP_S, answers=lambda: answers_http("127.0.0.1", port, "/health")
    )


def _web(environment: Environment) -> Program:
    command = (sys.executable, "manage.py", "serve", "--drain-s", str(DRAIN_S))
    host = reachable(environment.bind_host)
    named = next((name for name in environment.allowed_hosts if not name.startswith((".", "*"))), host)
    return Program(
        "web",
        command,
        WORKING,
        WORKING_STOP_S,
        answers=lambda: answers_http(host, environment.bind_port, "/readyz", named),
    )


def _python(name: str, module: str, *arguments: str) -> Program:
    return Program(name, (sys.executable, "-m", module, *arguments), WORKING, WORKING_STOP_S)


def greeting(checkout: Checkout, took_s: float) -> str:
    """Where everything is, and how to log in."""
    environment = checkout.environment
    host = reachable(environment.bind_host)
    base = f"http://{f'[{host}]' if ':' in host else host}:{environment.bind_port}"
    rows = [("Agents", f"{base}/dashboard/"), ("Admin", f"{base}/admin/")]
    if environment.demo:
        rows.insert(0, ("Demo shop", f"{base}/demo/"))
    logins = read_demo_logins(checkout.var_dir) if environment.demo else {}
    rows += [(f"Log in as {name}", password) for name, password in logins.items()]
    lines = [f"  {label:<16} {value}" for label, value in rows]
    return "\n".join(["", f"chatsvc is ready ({took_s:.1f} s). Ctrl-C ends it.", "", *lines, ""])


def reachable(host: str) -> str:
    """An address at which this machine reaches a server bound to `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound


def _embedded_redis_socket(environment: Environment, var_dir: Path) -> Path | None:
    if environment.redis_url != f"unix://{environment.var_dir / 'redis.sock'}":
        return None
    return preflight.socket_folder(var_dir, os.environ.get("XDG_RUNTIME_DIR")) / "redis.sock"


def _at_signals(numbers: Iterable[signal.Signals], act: signal.Handlers | Callable[..., None]) -> None:
    for number in numbers:
        signal.signal(number, act)


def _stop(_number: int, _frame: object) -> None:
    _at_signals(ENDING, signal.SIG_IGN)  # until there is something to hurry
    raise Stopped


def say(text: str) -> None:
    if text:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
