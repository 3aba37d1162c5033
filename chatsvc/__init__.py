"""Wiring, nothing else: settings, urls, asgi, celery, and the owner of the process."""

from chatsvc.celery import app as celery_app

__all__ = ["celery_app"]
