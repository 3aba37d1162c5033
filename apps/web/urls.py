"""Pages: the widget's loader and frame, the demo shop."""

from __future__ import annotations

from django.urls import path

from apps.web import demo, widget

urlpatterns = [
    path("widget.js", widget.loader, name="widget-loader"),
    path("widget/<str:site_id>/", widget.frame, name="widget-frame"),
    path("demo/", demo.shop, name="demo"),
    path("demo/identity", demo.identity, name="demo-identity"),
]
