"""Measured turns over REST: read-only, for agents, inside their own workspace."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.conversations.api import IsAgent, NewestFirst, asking_agent, named_conversation
from apps.insights.latency import LONGEST_WINDOW_HOURS, WINDOW_HOURS, latency
from apps.insights.quantiles import of_gaps
from apps.turns.models import Turn


class StageRow(serializers.Serializer[dict[str, Any]]):
    name = serializers.CharField()
    start_ms = serializers.FloatField(help_text="From the receipt of the question.")
    ms = serializers.FloatField()


class QuantileRow(serializers.Serializer[dict[str, Any]]):
    count = serializers.IntegerField()
    p50 = serializers.FloatField()
    p95 = serializers.FloatField()
    p99 = serializers.FloatField()


class TurnRow(serializers.ModelSerializer[Turn]):
    stages = serializers.SerializerMethodField()
    inter_token_ms = serializers.SerializerMethodField()

    class Meta:
        model = Turn
        fields = (
            "turn", "part", "end", "endpoint", "stages", "marks", "painted_ms", "ttft_ms", "added_ms",
            "inter_token_ms", "prompt_tokens", "cached_tokens", "completion_tokens", "created_at",
        )  # fmt: skip

    @extend_schema_field(StageRow(many=True))
    def get_stages(self, turn: Turn) -> list[dict[str, Any]]:
        return [bar._asdict() for bar in turn.bars()]

    @extend_schema_field(QuantileRow(allow_null=True))
    def get_inter_token_ms(self, turn: Turn) -> dict[str, Any] | None:
        found = of_gaps(turn.gaps)
        return asdict(found) if found else None


class ConversationTurns(generics.ListAPIView[Turn]):
    """The assistant's turns in one conversation as measured, newest first. Fixed queries."""

    permission_classes = (IsAgent,)
    serializer_class = TurnRow
    pagination_class = NewestFirst

    def get_queryset(self) -> QuerySet[Turn]:
        return Turn.objects.filter(conversation_id=named_conversation(self))


class SiteRow(serializers.Serializer[dict[str, Any]]):
    site = serializers.CharField()
    name = serializers.CharField()
    turns = serializers.IntegerField()
    painted = QuantileRow(allow_null=True, help_text="Submit to the first visible text, ms.")
    ttft = QuantileRow(allow_null=True, help_text="Receipt of the question to the model's first token, ms.")
    added = QuantileRow(allow_null=True, help_text="What we add to the model's own time, ms.")
    inter_token = QuantileRow(allow_null=True, help_text="Between two pieces of an answer, ms.")


class Latency(APIView):
    """How fast the workspace's sites answer."""

    permission_classes = (IsAgent,)

    @extend_schema(
        parameters=[OpenApiParameter("hours", int, description=f"1 to {LONGEST_WINDOW_HOURS}")],
        responses=SiteRow(many=True),
    )
    def get(self, request: Request) -> Response:
        """P50, P95 and P99 by site over the last hours. Two queries."""
        hours = serializers.IntegerField(min_value=1, max_value=LONGEST_WINDOW_HOURS)
        try:
            wanted = hours.run_validation(request.query_params.get("hours", WINDOW_HOURS))
        except serializers.ValidationError as error:
            raise serializers.ValidationError({"hours": error.detail}) from error
        turns = Turn.objects.filter(conversation__workspace_id=asking_agent(request).workspace_id)
        return Response([asdict(one) for one in latency(turns, wanted)])
