"""What stands behind every API of the server: plans, the prefix cache, and how long thinking takes."""

from __future__ import annotations

import asyncio
import random

import msgspec

from tests.fakes.transport.exchange import Request
from tests.fakes.upstream.cache import PrefixCache, count_tokens
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.ledger import Seen
from tests.fakes.upstream.profile import Profile


class Refused(Exception):
    """A request this server would not answer on a good day either."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class Model:
    """One model on one card, as far as time and memory go."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.always: Plan | None = None
        self._plans: list[Plan] = []
        self._cache = PrefixCache()
        self._last_used = float("-inf")
        self._release = asyncio.Event()

    def expect(self, plans: tuple[Plan, ...]) -> None:
        """For the next requests, in order."""
        self._plans.extend(plans)

    def take_plan(self, body: str) -> Plan:
        for at, plan in enumerate(self._plans):
            if plan.match in body:
                left = plan.times - 1
                self._plans[at : at + 1] = [msgspec.structs.replace(plan, times=left)] if left > 0 else []
                return plan
        return self.always if self.always is not None and self.always.match in body else Plan()

    def forget(self) -> None:
        self._plans.clear()
        self.always = None
        self._cache.clear()

    def release(self) -> None:
        self._release.set()
        self._release = asyncio.Event()

    async def released(self) -> None:
        await self._release.wait()

    def admit(self, request: Request) -> None:
        """Raises `Refused`."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if key in self.profile.forbidden_keys:
            raise Refused(403, "permission_denied", "This key may not use this model.")
        if self.profile.api_keys and (scheme != "Bearer" or key not in self.profile.api_keys):
            raise Refused(401, "invalid_api_key", "Incorrect API key provided.")

    def serves(self, name: str) -> None:
        """Raises `Refused`."""
        if self.profile.models and name not in self.profile.models:
            raise Refused(404, "model_not_found", f"The model `{name}` does not exist.")

    def begin(self, rendered: bytes, key: str, plan: Plan, seen: Seen, rng: random.Random) -> float:
        """Notes in `seen` what the prompt costs; returns the seconds to its first token."""
        now = asyncio.get_running_loop().time()
        seen.prompt_tokens = count_tokens(rendered)
        seen.cached_tokens = self._cache.cached_tokens(rendered, key, self.profile, now)
        thinking_s = self._thinking_s(plan, rng, seen, now)
        self._last_used = now
        return thinking_s

    def remember(self, computed: bytes, key: str) -> None:
        self._cache.remember(computed, key, self.profile, asyncio.get_running_loop().time())

    def _thinking_s(self, plan: Plan, rng: random.Random, seen: Seen, now: float) -> float:
        profile = self.profile
        first = profile.first_token_s
        if profile.first_token_high_s:
            first = rng.triangular(profile.first_token_low_s, profile.first_token_high_s, first)
        if plan.first_token_s is not None:
            first = plan.first_token_s
        asleep = now - self._last_used > profile.unload_after_s
        uncached = seen.prompt_tokens - seen.cached_tokens
        return first + uncached * profile.prefill_s_per_token + (profile.load_s if asleep else 0.0)
