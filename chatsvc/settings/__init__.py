"""Django settings, from `chatsvc/environment.py`. A value exists here only if Django or two deployments need it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import dj_database_url

from apps.stores.redis import layer_connections
from chatsvc.environment import BASE_DIR, read_environment
from chatsvc.settings.admin import UNFOLD as UNFOLD
from chatsvc.settings.logs import LOGGING as LOGGING

ENVIRONMENT = read_environment()

SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = False
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.trusted_origins)
BEHIND_TLS_PROXY = ENVIRONMENT.behind_tls_proxy
DEMO = ENVIRONMENT.demo

INSTALLED_APPS = [
    "daphne",
    "chatsvc",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "apps.accounts",
    "apps.customers",
    "apps.conversations",
    "apps.knowledge",
    "apps.rulebook",
    "apps.llm",
    "apps.turns",
    "apps.insights",
    "apps.web",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "chatsvc.urls"
ASGI_APPLICATION = "chatsvc.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    config: dict[str, Any] = dict(dj_database_url.parse(ENVIRONMENT.database_url))
    config["ATOMIC_REQUESTS"] = False
    if "sqlite" in config["ENGINE"]:
        # A file, as in service: in a shared in-memory database two threads lock each other out without waiting.
        config["TEST"] = {"NAME": f"{config['NAME']}-test"}
        # Opening a file costs more than most queries; each thread of the bounded executors keeps its own.
        config["CONN_MAX_AGE"] = None
        synchronous = "FULL" if ENVIRONMENT.fsync else "NORMAL"
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 8,  # below the deadlines of whoever waits (`apps/stores/database.py`, `log.py`)
            "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous};",
        }
        return config
    commit = "on" if ENVIRONMENT.fsync else "off"
    # Persistent connections do not work under ASGI: the driver's pool keeps them instead.
    config["CONN_MAX_AGE"] = 0
    # After a restart of the database the pool holds connections that are dead: each is tried before it is handed out.
    config["CONN_HEALTH_CHECKS"] = True
    config["OPTIONS"] = {
        # The pool doubles its pause from try to try, and would leave a database that is back alone for as long again as
        # it was away. What is given up early is tried anew for whoever asks next, and somebody does every 2 s.
        "pool": {"min_size": 1, "max_size": 12, "timeout": 5, "reconnect_timeout": 2},
        "connect_timeout": 3,
        # A network that swallows everything is noticed within about 10 s.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "options": f"-c synchronous_commit={commit} -c lock_timeout=5s -c statement_timeout=30s",
    }
    return config


DATABASES = {"default": _database()}

REDIS_URL = ENVIRONMENT.redis_url
_BROKER_URL = (
    REDIS_URL.replace("unix://", "redis+socket://") if REDIS_URL.startswith("unix://") else REDIS_URL
)

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py >= 8 ends an idle blocking read after 5 s unless told otherwise.
        "CONFIG": {
            "hosts": [
                {
                    "address": REDIS_URL,
                    "socket_timeout": None,
                    "max_connections": 1000,
                    "redis_connect_func": layer_connections.connected,
                }
            ],
            "prefix": "chatsvc",
        },
    },
}

CELERY_BROKER_URL = _BROKER_URL
# Workers log as the web process does.
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_IGNORE_RESULT = True
# A worker that is gone leaves its task to another, after the visibility timeout below. One that killed only the
# process of its pool is not handed out again at once, to kill the next: each has a sweep, or its next time.
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_SOFT_TIME_LIMIT = 20
CELERY_TASK_TIME_LIMIT = 30
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    # A wait for tasks that gets no answer within 5 s more is given up and begun on a new connection.
    "health_check_interval": 5,
    "max_retries": 1,
    # A killed worker's task is handed out again after this long: longer than any may run (120 s, an article).
    "visibility_timeout": 180,
}
CELERY_TASK_DEFAULT_QUEUE = "celery"
CELERY_BEAT_SCHEDULER = "chatsvc.beat.Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(ENVIRONMENT.var_dir / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    "prune-turns": {"task": "apps.insights.tasks.prune_turns", "schedule": timedelta(hours=1)},
    "prune-outbox": {"task": "apps.conversations.tasks.prune_outbox", "schedule": timedelta(hours=1)},
    "sweep-outbox": {"task": "apps.conversations.tasks.sweep_outbox", "schedule": timedelta(seconds=5)},
    "ingest-stale-articles": {
        "task": "apps.knowledge.tasks.ingest_stale",
        "schedule": timedelta(seconds=10),
        "options": {"expires": 10},
    },
    "canary": {"task": "apps.turns.tasks.sing", "schedule": timedelta(seconds=5), "options": {"expires": 30}},
    "learn-requests": {"task": "apps.turns.tasks.learn_requests", "schedule": timedelta(hours=1)},
}

EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if ENVIRONMENT.mail_host else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = ENVIRONMENT.var_dir / "mail"
EMAIL_HOST = ENVIRONMENT.mail_host
EMAIL_PORT = ENVIRONMENT.mail_port
EMAIL_HOST_USER = ENVIRONMENT.mail_user
EMAIL_HOST_PASSWORD = ENVIRONMENT.mail_password
EMAIL_USE_SSL = ENVIRONMENT.mail_port == 465
EMAIL_USE_TLS = not EMAIL_USE_SSL
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENVIRONMENT.mail_from

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/dashboard/"
LOGOUT_REDIRECT_URL = "/login/"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"

# Each long-running process that could hang touches a file of its name here as long as it does not.
SIGNS_DIR = ENVIRONMENT.var_dir / "signs"

STATIC_URL = "/static/"
STATIC_ROOT = ENVIRONMENT.var_dir / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsvc.static.ModuleManifestStorage"},
}
WHITENOISE_IMMUTABLE_FILE_TEST = r"^.+\.[0-9a-f]{8}\..+$"

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS_PROXY
SECURE_REFERRER_POLICY = "strict-origin-when-cross-origin"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "chatsvc.rest.error_response",
}
SPECTACULAR_SETTINGS = {"TITLE": "chatsvc", "VERSION": "1", "SERVE_INCLUDE_SCHEMA": False}
