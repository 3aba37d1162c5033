"""The loader that a shop's page includes, and the frame it opens."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import condition, require_safe

from apps.accounts.models import Site
from apps.accounts.sites import find_site
from apps.engine.languages import Language, language_of
from apps.web.policy import NOBODY, SELF, content_security_policy

LOADER_MAX_AGE_S: Final = 300
# Everything app.js imports before it runs, so that the browser asks for all of it at once.
MODULES: Final = (
    "js/widget/announcer.js",
    "js/widget/app.js",
    "js/widget/bubble.js",
    "js/widget/chat.js",
    "js/widget/composer.js",
    "js/widget/dom.js",
    "js/widget/header.js",
    "js/widget/layout.js",
    "js/widget/outbox.js",
    "js/widget/painter.js",
    "js/widget/paints.js",
    "js/widget/port.js",
    "js/widget/reading.js",
    "js/widget/session.js",
    "js/widget/status.js",
    "js/widget/storage.js",
    "js/widget/thread.js",
    "js/widget/words.js",
    "js/wire/catchup.js",
    "js/wire/connection.js",
    "js/wire/frames.js",
    "js/wire/icons.js",
    "js/wire/live.js",
    "js/wire/markdown-blocks.js",
    "js/wire/markdown-inlines.js",
    "js/wire/markdown.js",
    "js/wire/msgpack.js",
    "js/wire/timeline.js",
)


def _loader_etag(request: HttpRequest) -> str:
    # Not `hash`, which differs from process to process.
    return f'"{sha256(_loader().encode()).hexdigest()[:16]}"'


@require_safe
@gzip_page
@condition(etag_func=_loader_etag)
def loader(request: HttpRequest) -> HttpResponse:
    """The script behind the snippet: one stable address, checked again every five minutes."""
    headers = {
        "Cache-Control": f"public, max-age={LOADER_MAX_AGE_S}",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return HttpResponse(_loader(), content_type="text/javascript; charset=utf-8", headers=headers)


@require_safe
@gzip_page
@xframe_options_exempt
def frame(request: HttpRequest, site_id: str) -> HttpResponse:
    """The widget's document. Browsers show it only inside pages of the site's allowed origins. One query."""
    site = find_site(site_id)
    language = language_of(request.GET.get("lang", ""))
    if site is None:
        return render(request, "widget/unknown.html", {"language": language}, status=404)
    context = {
        "config": _config(site, language),
        "language": "zh-Hans" if language is Language.CHINESE else "en",
        "modules": MODULES,
        "drafts": site.reads_drafts,
    }
    response = render(request, "widget/frame.html", context)
    response["Content-Security-Policy"] = content_security_policy(
        request, images=f"{SELF} data:", framed_by=" ".join(site.allowed_origins) or NOBODY
    )
    response["Cache-Control"] = "no-cache"
    return response


def _config(site: Site, language: Language) -> dict[str, Any]:
    return {
        "site": site.pk,
        "name": site.name,
        "accent": site.accent,
        "assistant": site.assistant_name,
        "origins": site.allowed_origins,
        "locale": language,
        "greeting": {"en": site.greeting_en, "zh": site.greeting_zh},
        "suggestions": {"en": site.suggestions_en, "zh": site.suggestions_zh},
        "catalogs": _catalogs(),
    }


@cache
def _loader() -> str:
    return _source("js/widget/loader.js").read_text(encoding="utf-8")


@cache
def _catalogs() -> dict[str, Any]:
    return {
        language: json.loads(_source(f"js/widget/locale/{language}.json").read_text(encoding="utf-8"))
        for language in Language
    }


def _source(name: str) -> Path:
    found = finders.find(name)
    if not isinstance(found, str):
        raise FileNotFoundError(f"{name} is not under {settings.STATICFILES_DIRS}")
    return Path(found)
