"""Pages: the agents' dashboard with its log-in, the widget's loader and frame, the demo shop."""

from __future__ import annotations

from django.urls import path

from apps.web import dashboard, demo, widget

urlpatterns = [
    path("dashboard/", dashboard.dashboard, name="dashboard"),
    path("login/", dashboard.Login.as_view(), name="login"),
    path("logout/", dashboard.Logout.as_view(), name="logout"),
    path("widget.js", widget.loader, name="widget-loader"),
    path("widget/<str:site_id>/", widget.frame, name="widget-frame"),
    path("demo/", demo.shop, name="demo"),
    path("demo/identity", demo.identity, name="demo-identity"),
]
