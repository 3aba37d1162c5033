"""Finished turns with their waterfall. The live turn and its fence are columns of the conversation."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.conversations.models import Conversation


class Turn(models.Model):
    """One attempt of the assistant to answer, as measured."""

    id = models.BigAutoField(primary_key=True)
    turn = models.CharField(max_length=20)
    part = models.PositiveIntegerField()
    conversation = models.ForeignKey(
        Conversation, verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="turns"
    )
    end = models.CharField(_("end"), max_length=12)
    endpoint = models.CharField(_("endpoint"), max_length=80, blank=True)
    stages = models.JSONField(default=list)
    marks = models.JSONField(default=dict)
    ttft_ms = models.FloatField(null=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [models.UniqueConstraint(fields=["turn", "part"], name="one_row_a_turn_part")]

    def __str__(self) -> str:
        return f"{self.turn} {self.end}"


class ProcessLease(models.Model):
    """A web process that runs turns, and when it last said so by the database's clock."""

    process = models.CharField(primary_key=True, max_length=20)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.process
