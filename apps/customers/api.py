"""What the loader and the frame ask for before their socket opens."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, Throttled
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import Site
from apps.accounts.sites import find_site
from apps.customers.identity import TOKEN_LIMIT, issue_visitor_token, kept_visitor, visitor_token_expiry
from apps.customers.visits import seconds_to_wait
from apps.wire.times import milliseconds


class SessionRequest(serializers.Serializer[dict[str, Any]]):
    site = serializers.CharField(max_length=20)
    token = serializers.CharField(max_length=TOKEN_LIMIT, required=False, allow_blank=True, allow_null=True)


class SessionReply(serializers.Serializer[dict[str, Any]]):
    token = serializers.CharField()
    customer = serializers.CharField()
    expires_at = serializers.IntegerField(help_text="Milliseconds since 1970, UTC.")


class ConfigReply(serializers.Serializer[dict[str, Any]]):
    allowed = serializers.BooleanField(help_text="Whether the asking page's origin is on the site's list.")
    origin = serializers.CharField(help_text="The origin as judged.")
    site = serializers.CharField()
    name = serializers.CharField()
    accent = serializers.CharField()
    assistant_name = serializers.CharField()
    greeting = serializers.DictField(child=serializers.CharField(), help_text="By language: en, zh.")
    suggestions = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))


class OpenView(APIView):
    """Anyone may ask: no session is read, so no cookie can act here and none is needed."""

    authentication_classes = ()
    permission_classes = (AllowAny,)


class WidgetSession(OpenView):
    @extend_schema(request=SessionRequest, responses=SessionReply)
    def post(self, request: Request) -> Response:
        """A visitor token of a site: the same visitor while the token given is still good. One query.

        429 where too many new ones were given to this address or for this site.
        """
        asked = SessionRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        site = _site(asked.validated_data["site"])
        had = asked.validated_data.get("token")
        if kept_visitor(site.pk, had) is None:
            wait_s = seconds_to_wait(site.pk, request.META.get("REMOTE_ADDR", ""))
            if wait_s:
                raise Throttled(wait_s, "Too many visitors at once.", "slow_down")
        token, customer = issue_visitor_token(site.pk, had)
        expires_at = milliseconds(visitor_token_expiry(token))
        reply = SessionReply({"token": token, "customer": customer, "expires_at": expires_at})
        return Response(reply.data, headers={"Cache-Control": "no-store"})


class WidgetConfig(OpenView):
    @property
    def default_response_headers(self) -> dict[str, str]:
        # Of refusals too: a page may read that there is no such site.
        return {**super().default_response_headers, "Access-Control-Allow-Origin": "*"}

    @extend_schema(parameters=[OpenApiParameter("site", required=True)], responses=ConfigReply)
    def get(self, request: Request) -> Response:
        """How the widget of a site looks, and whether the asking page may show it. One query.

        Public by design: the loader calls it from any page, so that it can say in the console what is wrong.
        What enforces the list is the frame's `frame-ancestors`, not this answer.
        """
        site = _site(request.query_params.get("site", ""))
        origin = _asking_origin(request)
        reply = ConfigReply(
            {
                "allowed": origin in site.allowed_origins,
                "origin": origin,
                "site": site.pk,
                "name": site.name,
                "accent": site.accent,
                "assistant_name": site.assistant_name,
                "greeting": {"en": site.greeting_en, "zh": site.greeting_zh},
                "suggestions": {"en": site.suggestions_en, "zh": site.suggestions_zh},
            }
        )
        return Response(reply.data, headers={"Cache-Control": "no-cache", "Vary": "Origin"})


def _site(site_id: str) -> Site:
    site = find_site(site_id)
    if site is None:
        raise NotFound("There is no such site.")
    return site


def _asking_origin(request: Request) -> str:
    # Browsers leave Origin out when a page asks its own server.
    return request.headers.get("Origin") or f"{request.scheme}://{request.get_host()}"
