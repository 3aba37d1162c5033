"""A second site of the demo, whose assistant says what a test wrote and stands still where the test wants it to.

Its model is ours; everything else is the real stack. The shop's page shows it in place of Lantern's own site.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import jwt
from playwright.sync_api import Page, Route

from apps.accounts.models import Site, bump
from apps.conversations.commands import CustomerMessage
from apps.conversations.log import Log
from apps.llm.models import ModelEndpoint
from apps.stores.ids import new_id
from apps.turns.records import last_record
from tests.browser.pages import OpenPage
from tests.browser.shopper import Shopper
from tests.fakes.upstream.faults import Action, Fault, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.database import django_on
from tests.support.demo import Demo

T = TypeVar("T")

NAME = "Storybook"
# As long as a name may be.
ASSISTANT = "Scheherazade, who goes on telling stories night after night"


class Story:
    """`upstream` is the model of the site `site`."""

    def __init__(self, demo: Demo, upstream: Upstream, site: str, secret: str) -> None:
        self.demo = demo
        self.upstream = upstream
        self.site = site
        self._secret = secret

    def tell(self, text: str, *, pause_after: int | None = None) -> None:
        """What the next question is answered with; after so many tokens it waits for `go_on`."""
        stall = Fault(action=Action.STALL, after_tokens=pause_after) if pause_after is not None else None
        self.upstream.next(Plan(script=Text(text), faults=(stall,) if stall else ()))

    def paused(self) -> None:
        """Waits until the answer stands still."""
        self.upstream.wait("stalled", 1)

    def go_on(self) -> None:
        self.upstream.release()

    def shopper(
        self, open_page: OpenPage, language: str = "en", *, at: str = "", before: Callable[[Page], None] | None = None,
        **profile: Any,
    ) -> Shopper:  # fmt: skip
        """A visitor of the shop's page with this site's widget."""

        def prepare(page: Page) -> None:
            page.context.route("**/demo/?lang=*", self._instead_of_lantern)
            if before is not None:
                before(page)

        view = {"viewport": {"width": 1280, "height": 800}, **profile}
        page = open_page(f"{at or self.demo.url}/demo/?lang={language}", before=prepare, **view)
        return Shopper(page, language)

    @contextmanager
    def reading_drafts(self) -> Iterator[None]:
        """Meanwhile the site wants to know what its customers are writing."""
        _in_thread(lambda: self._read_drafts(on=True))
        try:
            yield
        finally:
            _in_thread(lambda: self._read_drafts(on=False))

    @contextmanager
    def off_the_list(self) -> Iterator[None]:
        """Meanwhile the shop's pages are not among those that may show the site's chat."""
        [origins] = _in_thread(lambda: self._allow(["https://elsewhere.example"]))
        try:
            yield
        finally:
            _in_thread(lambda: self._allow(origins))

    def last_marks(self, conversation: str) -> dict[str, str]:
        """What was noted of the conversation's last stored turn; nothing while none is."""
        return _in_thread(lambda: self._last_marks(conversation))

    def said_before(self, conversation: str, customer: str, texts: Sequence[str]) -> None:
        """Messages of a customer, oldest first, past the rate at which one may speak. Published to nobody."""
        messages = [_message(conversation, customer, text) for text in texts]
        _in_thread(lambda: self._store(messages))

    def _store(self, messages: Sequence[CustomerMessage]) -> None:
        with django_on(self.demo.database_url):
            asyncio.run(_append(messages))

    def _read_drafts(self, *, on: bool) -> None:
        with django_on(self.demo.database_url):
            Site.objects.filter(pk=self.site).update(reads_drafts=on)
            bump(self.site, "settings_version")

    def _allow(self, origins: list[str]) -> list[list[str]]:
        with django_on(self.demo.database_url):
            before = list(Site.objects.filter(pk=self.site).values_list("allowed_origins", flat=True))
            Site.objects.filter(pk=self.site).update(allowed_origins=origins)
            bump(self.site, "settings_version")
            return before

    def _last_marks(self, conversation: str) -> dict[str, str]:
        with django_on(self.demo.database_url):
            turn = last_record(conversation)
            return {} if turn is None else dict(turn.marks)

    def identity(self, subject: str, *, lifetime_s: int = 600, **claims: Any) -> str:
        """What the site's own server would sign for a customer."""
        values = {"sub": subject, "iss": self.site, "exp": int(time.time()) + lifetime_s, **claims}
        return jwt.encode(values, self._secret, algorithm="HS256")

    def _instead_of_lantern(self, route: Route) -> None:
        answer = route.fetch()
        page = re.sub(r'data-site="\w+"', f'data-site="{self.site}"', answer.text())
        route.fulfill(response=answer, body=page)


@contextmanager
def storybook(demo: Demo) -> Iterator[Story]:
    """Call it with the database unblocked."""
    with Upstream(tls=False) as upstream:
        site, secret = _in_thread(lambda: _make(demo, upstream))
        yield Story(demo, upstream, site, secret)


def _make(demo: Demo, upstream: Upstream) -> tuple[str, str]:
    with django_on(demo.database_url):
        lantern = Site.objects.get(name="Lantern")
        site = Site.objects.create(
            workspace=lantern.workspace,
            name=NAME,
            allowed_origins=lantern.allowed_origins,
            assistant_name=ASSISTANT,
        )
        ModelEndpoint.objects.create(
            site=site, name="story", base_url=upstream.base_url, model="story-1", api_key="key"
        )
        bump(site, "settings_version")
        return site.pk, site.identity_secret


def _message(conversation: str, customer: str, text: str) -> CustomerMessage:
    return CustomerMessage(
        conversation=conversation,
        customer=customer,
        name="",
        client_id=new_id(),
        text=text,
        at=datetime.now(UTC),
        turn=new_id(),
        process="story",
        assistant=False,
    )


async def _append(messages: Sequence[CustomerMessage]) -> None:
    """In this order: each is queued before its first wait."""
    log = Log(lambda _: None)
    log.open()
    try:
        await asyncio.gather(*map(log.append, messages))
    finally:
        await log.close()


def _in_thread(work: Callable[[], T]) -> T:
    # Playwright's loop runs in this thread, where Django's ORM refuses to work.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
