"""The worker's side of turns."""

from __future__ import annotations

import logging
from typing import Any

from asgiref.sync import async_to_sync
from celery import shared_task
from channels.layers import get_channel_layer
from django.db import DatabaseError

from apps.customers.preload import fetch_into_redis
from apps.customers.shop import ShopError
from apps.rulebook.resident import validate_bundle
from apps.stores.redis import Unreachable, connect_blocking
from apps.turns import canary
from apps.turns.ahead import learned
from apps.turns.between.announcements import PROCESSES, ResidentsMoved, to_message

logger = logging.getLogger(__name__)


@shared_task(bind=True, max_retries=2, soft_time_limit=10, time_limit=15, expires=60)
def preload(self: Any, conversation: str, customer: str, site: str) -> None:
    """Profile and orders into Redis, the site's rules checked, the residents told to look. Repeatable."""
    try:
        for fault in validate_bundle(site):
            logger.warning("rule of site %s: %s", site, fault)
        announce_residents()
        fetched = fetch_into_redis(customer)
    except (ShopError, DatabaseError, *Unreachable) as error:
        raise self.retry(exc=error, countdown=1 + self.request.retries) from error
    logger.info("preloaded conversation %s: %s", conversation, "facts" if fetched else "nothing to fetch")


@shared_task(soft_time_limit=5, time_limit=10, expires=30)
def sing() -> None:
    """The canary. Repeatable."""
    with connect_blocking() as redis:
        canary.stamp(redis)


@shared_task(expires=600)
def learn_requests() -> None:
    """Enqueues the learning of each site that prepares for the next question."""
    for site in learned.sites_that_prefetch():
        learn_site.delay(site)


@shared_task(soft_time_limit=110, time_limit=120, expires=600)
def learn_site(site: str) -> None:
    """Learns anew what the site's customers ask next, and tells the web processes. Repeatable."""
    if learned.learn(site):
        logger.info("site %s has learned what customers ask next", site)
        announce_residents()


def announce_residents() -> None:
    """Asks every web process to look for newer versions now. Lost announcements cost half a second."""
    layer = get_channel_layer()
    try:
        async_to_sync(layer.group_send)(PROCESSES, to_message(ResidentsMoved(), origin=""))
    except Unreachable:
        logger.warning("the residents could not be told; they will find out by themselves")
