"""Which Chromium drives the browser tests, and how a machine without one gets it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

INSTALL_DEADLINE_S = 300
_ON_PATH = ("chromium", "chromium-browser", "google-chrome")
# Debian's names of a browser and of a font with Chinese characters.
_DEBIAN_BROWSER, _DEBIAN_FONT = "chromium", "fonts-wqy-zenhei"


class NoChromium(RuntimeError):
    """Neither found nor installable; the message says what to do."""


def find_chromium() -> str | None:
    """CHROMIUM if set, else Playwright's own, else one on the path."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    candidates = [own, *filter(None, map(shutil.which, _ON_PATH))]
    return next((path for path in candidates if os.path.exists(path)), None)


def ensure_chromium() -> None:
    """Installs what is missing by the best route there is, and says so. Raises `NoChromium`."""
    if find_chromium() is None:
        _say("No Chromium here: trying Playwright's download.")
        _try([sys.executable, "-m", "playwright", "install", "chromium"])
    if find_chromium() is None and _install_debian(_DEBIAN_BROWSER):
        _say("Installed Debian's chromium.")
    if find_chromium() is None:
        raise NoChromium("The browser tests need Chromium: install it, or set CHROMIUM=/path/to/chromium.")
    if not _draws_chinese() and _install_debian(_DEBIAN_FONT):
        _say(f"Installed {_DEBIAN_FONT} for Chinese text.")


def _draws_chinese() -> bool:
    listing = shutil.which("fc-list")
    if listing is None:
        return False
    return bool(subprocess.run([listing, ":lang=zh"], capture_output=True, check=False).stdout.strip())


def _install_debian(package: str) -> bool:
    if shutil.which("apt-get") is None or os.getuid() != 0:
        return False
    _say(f"Installing Debian's {package}.")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return _try(["apt-get", "update", "-qq"], quiet) and _try(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], quiet
    )


def _try(command: list[str], environment: dict[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _say(f"{command[0]} did not work: {error}")
        return False
    if done.returncode:
        _say((done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2])
    return done.returncode == 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
