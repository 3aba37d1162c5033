"""The demo shop Lantern: a page that embeds the widget as any shop would. Served only in a demo."""

from __future__ import annotations

import time
from typing import Any, Final

import jwt
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts.models import Site
from apps.engine.languages import Language, language_of
from apps.web.demo_catalog import CUSTOMERS, shown

IDENTITY_LIFETIME_S: Final = 600


@require_safe
def shop(request: HttpRequest) -> HttpResponse:
    """The shop's page in English or Chinese: as the visitor chose by `lang`, else as the browser asks."""
    language = language_of(request.GET.get("lang") or get_language() or "")
    tag = "zh-Hans" if language is Language.CHINESE else "en"
    context = {"language": language, "lang_tag": tag, "site": _site()}
    return render(request, "demo/shop.html", context | shown(language))


@require_safe
@never_cache
def identity(request: HttpRequest) -> HttpResponse:
    """What a real shop's server would sign for whoever is logged in there. Here anyone may be Mia or Leo."""
    customer = CUSTOMERS.get(request.GET.get("customer", ""))
    if customer is None:
        raise Http404("The demo's customers are mia and leo.")
    site = _site()
    claims: dict[str, Any] = {
        "sub": customer.id,
        "name": customer.name,
        "email": customer.email,
        "iss": site.pk,
        "exp": int(time.time()) + IDENTITY_LIFETIME_S,
    }
    return JsonResponse({"identity": jwt.encode(claims, site.identity_secret, algorithm="HS256")})


def _site() -> Site:
    if not settings.DEMO:
        raise Http404
    site = Site.objects.filter(workspace__name="Lantern").order_by("pk").first()
    if site is None:
        raise Http404("Lantern is not there yet: run `python manage.py seed_demo`.")
    return site
