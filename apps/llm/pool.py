"""The endpoints this process holds open: made on demand, kept warm, closed when no site wants them any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set
from weakref import WeakValueDictionary

from apps.llm.deadlines import Deadlines
from apps.llm.endpoint import Endpoint, Standing
from apps.llm.errors import AuthRefused, LlmError
from apps.llm.journal import Journal
from apps.llm.spec import EndpointSpec
from apps.llm.tactics import Tactics

logger = logging.getLogger(__name__)


# For pages that this process serves.
_of_this_process: WeakValueDictionary[str, Endpoint] = WeakValueDictionary()


def standing_here(endpoint_id: str) -> Standing | None:
    """How the endpoint of a row stands in this process; None where it is not held. From any thread."""
    endpoint = _of_this_process.get(endpoint_id)
    return endpoint.standing if endpoint else None


class Pool:
    """Endpoints by specification. Lives on the event loop; its line's keeper calls `tend`."""

    def __init__(self, deadlines: Deadlines, journal: Journal, tactics: Tactics) -> None:
        self._deadlines = deadlines
        self._journal = journal
        self._tactics = tactics
        self._endpoints: dict[EndpointSpec, Endpoint] = {}

    def endpoint(self, spec: EndpointSpec) -> Endpoint:
        """The endpoint of this specification; a new one connects on first use."""
        if spec not in self._endpoints:
            self._endpoints[spec] = Endpoint(spec, self._deadlines, self._tactics)
            _of_this_process[spec.id] = self._endpoints[spec]
        return self._endpoints[spec]

    def next_due(self) -> float | None:
        """Loop time of the next warm-up, None when nothing is held."""
        return min((endpoint.warm_due for endpoint in self._endpoints.values()), default=None)

    async def tend(self, wanted: Set[EndpointSpec]) -> None:
        """Opens what is new, warms what is due, closes what is unwanted and idle. All endpoints at once."""
        for spec in wanted:
            self.endpoint(spec)
        now = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for spec, endpoint in list(self._endpoints.items()):
                if spec not in wanted and endpoint.in_flight == 0:
                    del self._endpoints[spec]
                    group.create_task(endpoint.close())
                elif endpoint.warm_due <= now:
                    group.create_task(self._warm(endpoint))

    async def close(self) -> None:
        """Closes every connection."""
        endpoints, self._endpoints = self._endpoints, {}
        for endpoint in endpoints.values():
            await endpoint.close()

    async def _warm(self, endpoint: Endpoint) -> None:
        failure: LlmError | None = await endpoint.warm()
        if failure is None:
            return
        logger.warning("endpoint %s is not warm: %s (%s)", endpoint.spec.name, failure.label, failure)
        if isinstance(failure, AuthRefused):
            self._journal.health(endpoint.spec.id, failure.label)
