"""The log-in forms of both doors, and how often a password may be guessed at them.

Without Redis log-ins go on unlimited: whoever must repair the service has to get in.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import ngettext
from unfold.forms import AuthenticationForm as UnfoldAuthenticationForm

from apps.stores.addresses import neighbourhood
from apps.stores.buckets import Bucket, give_back, take
from apps.stores.redis import ask_blocking

SLOW_DOWN = "slow_down"


class PacedLogin(AuthenticationForm):
    """Judges a password only while name and address have attempts left; a log-in that succeeds costs none.

    After a refusal for haste `wait_s` says how many seconds are left.
    """

    wait_s = 0

    def clean(self) -> dict[str, Any]:
        buckets = _buckets(self.cleaned_data.get("username", ""), self._address())
        self.wait_s = ask_blocking(lambda redis: take(redis, buckets), operation="login", otherwise=0)
        if self.wait_s:
            minutes = -(-self.wait_s // 60)
            raise ValidationError(
                ngettext(
                    "Too many attempts. Try again in %(minutes)d minute.",
                    "Too many attempts. Try again in %(minutes)d minutes.",
                    minutes,
                ),
                code=SLOW_DOWN,
                params={"minutes": minutes},
            )
        cleaned: dict[str, Any] = super().clean()
        ask_blocking(lambda redis: give_back(redis, buckets), operation="login", otherwise=None)
        return cleaned

    def _address(self) -> str:
        return "" if self.request is None else str(self.request.META.get("REMOTE_ADDR", ""))


class AdminLogin(PacedLogin, UnfoldAuthenticationForm):  # type: ignore[misc]  # unfold has no types
    """The administration's door: staff only."""


def _buckets(username: str, address: str) -> tuple[Bucket, ...]:
    """Of this name from here; of everybody from here, for an office behind one address; of this name from anywhere."""
    name, here = _digest(username.strip().casefold()), neighbourhood(address)
    return (
        Bucket(f"login:both:{name}:{here}", burst=5, every_s=60),
        Bucket(f"login:address:{here}", burst=50, every_s=5),
        Bucket(f"login:name:{name}", burst=100, every_s=60),
    )


def _digest(name: str) -> str:
    """Of any length and any characters, a lone surrogate too."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
