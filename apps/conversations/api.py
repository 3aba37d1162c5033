"""Conversations over REST: read-only, for agents, inside their own workspace."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.accounts.agents import AgentIdentity, agent_for_user
from apps.conversations.models import Conversation, Message
from apps.wire.protocol import Status


class IsAgent(BasePermission):
    """An active agent's session. Puts the agent on the request for the view."""

    message = "Only agents may read this."

    def has_permission(self, request: Request, view: APIView) -> bool:
        agent = agent_for_user(request.user.pk)
        request.agent = agent  # type: ignore[attr-defined]  # DRF's request carries what permissions find
        return agent is not None


class NewestFirst(CursorPagination):
    ordering = ("-created_at", "-id")
    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 100


class InPlace(CursorPagination):
    ordering = "place"
    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200


class ConversationRow(serializers.ModelSerializer[Conversation]):
    customer = serializers.CharField(source="customer_id")
    customer_name = serializers.CharField(source="customer.name")
    verified = serializers.BooleanField(source="customer.verified")
    site = serializers.CharField(source="site_id")
    owner = serializers.CharField(source="owner_kind")
    agent = serializers.CharField(source="owner_agent_id", allow_null=True)
    team = serializers.CharField(source="team.name", allow_null=True, default=None)

    class Meta:
        model = Conversation
        fields = (
            "id", "site", "customer", "customer_name", "verified", "locale", "status", "owner", "agent",
            "team", "last_seq", "last_line", "last_author", "last_at", "waiting_since", "created_at",
        )  # fmt: skip


class MessageRow(serializers.ModelSerializer[Message]):
    name = serializers.CharField(source="author_name")

    class Meta:
        model = Message
        fields = ("id", "place", "author", "name", "text", "state", "sources", "turn", "part", "created_at")


class ConversationList(generics.ListAPIView[Conversation]):
    """The workspace's conversations that have begun, newest first. `?status=open|resolved`. Fixed queries."""

    permission_classes = (IsAgent,)
    serializer_class = ConversationRow
    pagination_class = NewestFirst

    def get_queryset(self) -> QuerySet[Conversation]:
        rows = Conversation.objects.filter(
            workspace_id=asking_agent(self.request).workspace_id, last_seq__gt=0
        )
        status = self.request.query_params.get("status")
        if status is not None:
            if status not in set(Status):
                raise serializers.ValidationError({"status": "open or resolved"})
            rows = rows.filter(status=status)
        return rows.select_related("customer", "team")


class ConversationMessages(generics.ListAPIView[Message]):
    """The messages of one conversation as they stand now, in the order of the screen. Fixed queries."""

    permission_classes = (IsAgent,)
    serializer_class = MessageRow
    pagination_class = InPlace

    def get_queryset(self) -> QuerySet[Message]:
        return Message.objects.filter(conversation_id=named_conversation(self))


@extend_schema(exclude=True)
class UnknownPath(APIView):
    """Whatever else is asked under /api/v1/: 404 in the one error form, not a page of HTML."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound("There is nothing at this address.")


def named_conversation(view: APIView) -> str:
    """The id in the address, once it is known to be of the agent's workspace. One query. Raises `NotFound`."""
    conversation: str = view.kwargs["conversation"]
    workspace = asking_agent(view.request).workspace_id
    if not Conversation.objects.filter(pk=conversation, workspace_id=workspace).exists():
        raise NotFound("There is no such conversation.")
    return conversation


def asking_agent(request: Any) -> AgentIdentity:
    """Whom `IsAgent` has let in."""
    agent: AgentIdentity = request.agent
    return agent
