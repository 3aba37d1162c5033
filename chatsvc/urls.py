"""Every address of the service except the sockets (`asgi.py`)."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView

from apps.conversations.api import ConversationList, ConversationMessages, UnknownPath
from apps.customers.api import WidgetConfig, WidgetSession
from apps.insights.api import ConversationTurns, Latency
from chatsvc import health

api = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("widget/session", WidgetSession.as_view(), name="widget-session"),
    path("widget/config", WidgetConfig.as_view(), name="widget-config"),
    path("conversations/", ConversationList.as_view(), name="conversations"),
    path("conversations/<str:conversation>/messages/", ConversationMessages.as_view(), name="messages"),
    path("conversations/<str:conversation>/turns/", ConversationTurns.as_view(), name="turns"),
    path("insights/latency", Latency.as_view(), name="latency"),
    re_path(r"^.*$", UnknownPath.as_view()),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/", include(api)),
    path("", include("apps.web.urls")),
]
