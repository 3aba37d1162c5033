"""Reads the environment and `.env` once, typed. The only place where a setting is read from `os.environ`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


class SettingError(Exception):
    """A setting is missing or out of range; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Deployment settings. Every field names its variable; see `.env` for the generated values."""

    secret_key: str  # SECRET_KEY
    demo: bool  # CHATSVC_DEMO: seed the demo workspace and serve the demo shop
    bind_host: str  # CHATSVC_BIND, host part
    bind_port: int  # CHATSVC_BIND, port part, 1-65535
    var_dir: Path  # CHATSVC_VAR: database, Redis files, logs and locks of this checkout
    database_url: str  # DATABASE_URL; SQLite under var_dir by default
    redis_url: str  # REDIS_URL; the embedded Redis by default
    allowed_hosts: tuple[str, ...]  # ALLOWED_HOSTS, comma-separated
    trusted_origins: tuple[str, ...]  # TRUSTED_ORIGINS, comma-separated, with scheme
    behind_tls_proxy: bool  # BEHIND_TLS_PROXY: a proxy ends TLS and says X-Forwarded-Proto and -For
    llm_base_url: str  # LLM_BASE_URL; empty means the builtin answers
    llm_api_key: str  # LLM_API_KEY
    llm_model: str  # LLM_MODEL
    llm_ca_file: str  # LLM_CA_FILE: PEM of private authorities that model servers may be signed by
    mail_host: str  # MAIL_HOST; empty writes mails to files under var_dir
    mail_port: int  # MAIL_PORT, 1-65535; 465 speaks TLS at once, others STARTTLS
    mail_user: str  # MAIL_USER
    mail_password: str  # MAIL_PASSWORD
    mail_from: str  # MAIL_FROM
    fsync: bool  # DURABILITY: full waits for the disk at each commit, normal survives only our own crash


def read_environment(variables: dict[str, str] | None = None) -> Environment:
    """Of the given variables alone; without them the environment's, which win over `.env`.

    Raises `SettingError` with one clear line.
    """
    values = {**_dotenv(BASE_DIR / ".env"), **os.environ} if variables is None else variables
    host, port = parse_bind(values.get("CHATSVC_BIND", "127.0.0.1:8000"))
    var_dir = Path(values.get("CHATSVC_VAR", str(BASE_DIR / "var")))
    return Environment(
        secret_key=_secret(values.get("SECRET_KEY", "")),
        demo=_chosen("CHATSVC_DEMO", values.get("CHATSVC_DEMO", "0"), no="0", yes="1"),
        bind_host=host,
        bind_port=port,
        var_dir=var_dir,
        database_url=values.get("DATABASE_URL") or f"sqlite:///{var_dir / 'chatsvc.sqlite3'}",
        redis_url=values.get("REDIS_URL") or f"unix://{var_dir / 'redis.sock'}",
        allowed_hosts=_listed(values.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")),
        trusted_origins=_listed(values.get("TRUSTED_ORIGINS", "")),
        behind_tls_proxy=_chosen("BEHIND_TLS_PROXY", values.get("BEHIND_TLS_PROXY", "0"), no="0", yes="1"),
        llm_base_url=values.get("LLM_BASE_URL", "").rstrip("/"),
        llm_api_key=values.get("LLM_API_KEY", ""),
        llm_model=values.get("LLM_MODEL", ""),
        llm_ca_file=values.get("LLM_CA_FILE", ""),
        mail_host=values.get("MAIL_HOST", ""),
        mail_port=_port("MAIL_PORT", values.get("MAIL_PORT", "587")),
        mail_user=values.get("MAIL_USER", ""),
        mail_password=values.get("MAIL_PASSWORD", ""),
        mail_from=values.get("MAIL_FROM", "support@localhost"),
        fsync=_chosen("DURABILITY", values.get("DURABILITY", "normal"), no="normal", yes="full"),
    )


def _dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _secret(value: str) -> str:
    if len(value) < 32:
        raise SettingError(
            "SECRET_KEY is missing or shorter than 32 characters: `make run` generates one in .env"
        )
    return value


def parse_bind(value: str) -> tuple[str, int]:
    """HOST and port of HOST:PORT. Raises `SettingError`."""
    host, _, port = value.rpartition(":")
    if not host or not _is_port(port):
        raise SettingError(f"the address to listen on is {value!r}: write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def _port(name: str, value: str) -> int:
    if not _is_port(value):
        raise SettingError(f"{name} is {value!r}: write a port, 1 to 65535")
    return int(value)


def _is_port(value: str) -> bool:
    return value.isdecimal() and 1 <= int(value) <= 65535


def _listed(value: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in value.split(",") if item.strip())


def _chosen(name: str, value: str, *, no: str, yes: str) -> bool:
    if value not in (no, yes):
        raise SettingError(f"{name} is {value!r}: write {no} or {yes}")
    return value == yes
