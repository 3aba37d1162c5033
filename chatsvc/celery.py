"""The Celery application: worker and beat start from here (`celery -A chatsvc`)."""

import os

from celery import Celery

from chatsvc.worker import watch_over_workers

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

app = Celery("chatsvc")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
watch_over_workers()
