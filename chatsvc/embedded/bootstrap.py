"""Makes `.venv` and installs requirement files into it, when they have changed. Standard library only.

Run by the system's Python: `python chatsvc/embedded/bootstrap.py requirements.txt [--no-deps=requirements-x.txt]`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"


def main(arguments: list[str]) -> int:
    try:
        ensure_venv()
        for argument in arguments:
            name = argument.removeprefix("--no-deps=")
            ensure_installed(ROOT / name, alone=name != argument)
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"Cannot write {error.filename or VENV} ({error.strerror}): make {ROOT} yours.\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class Refused(Exception):
    """What is missing and what to do, in one line."""


def ensure_venv() -> None:
    """A working `.venv` of the running Python's version; a broken or older one is made anew."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if PYTHON.exists() and _answers("import sys; print('%d.%d' % sys.version_info[:2])") == version:
        return
    sys.stdout.write(f"Creating .venv with Python {version}\n")
    sys.stdout.flush()
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(VENV)
    except subprocess.CalledProcessError as error:
        line = (
            f"This Python cannot make a virtual environment: install python{version}-venv (Debian, Ubuntu)."
        )
        raise Refused(line) from error


def ensure_installed(requirements: Path, *, alone: bool) -> None:
    """Installs the file's pins unless a stamp says that just these are there. `alone`: without dependencies."""
    stamp = VENV / f".installed-{requirements.stem}"
    digest = _digest(requirements)
    if stamp.exists() and stamp.read_text() == digest:
        return
    sys.stdout.write(f"Installing {requirements.name} (half a minute the first time)\n")
    sys.stdout.flush()
    command = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        "-r",
        str(requirements),
    ]
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [*command, *(["--no-deps"] if alone else [])],
        env=variables,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise Refused(_reason(done.stderr, requirements.name))
    stamp.write_text(digest)


def _reason(output: str, name: str) -> str:
    missing = re.search(r"No matching distribution found for (\S+)", output)
    if missing and "from versions: none" not in output:
        python = sys.version.split()[0]
        return f"No ready-made wheel of {missing[1]} for {sys.platform} and Python {python}: try Python 3.12."
    if missing:
        return f"pip cannot find {missing[1]}: check the network and pip's configuration (`pip config list`)."
    return f"pip could not install {name}; its message is above."


def _digest(requirements: Path) -> str:
    return hashlib.sha256(_text_with_included(requirements).encode()).hexdigest()


def _text_with_included(requirements: Path) -> str:
    text = requirements.read_text(encoding="utf-8")
    included = re.findall(r"^-[rc] (\S+)$", text, re.MULTILINE)
    return "\0".join([text, *(_text_with_included(requirements.parent / name) for name in included)])


def _answers(code: str) -> str:
    try:
        asked = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    except OSError:
        return ""
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
