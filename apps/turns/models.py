"""Finished turns with their waterfall. The live turn and its fence are columns of the conversation."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Site
from apps.conversations.models import Conversation
from apps.telemetry.waterfall import Bar, paint_bar
from apps.wire.protocol import TurnEnd


class Turn(models.Model):
    """One attempt of the assistant to answer, as measured."""

    ENDS = (
        (TurnEnd.FINISHED.value, _("Finished")),
        (TurnEnd.STOPPED.value, _("Stopped")),
        (TurnEnd.SUPERSEDED.value, _("Superseded")),
        (TurnEnd.TAKEN_OVER.value, _("Taken over")),
        (TurnEnd.INTERRUPTED.value, _("Interrupted")),
        (TurnEnd.FAILED.value, _("Failed")),
    )

    id = models.BigAutoField(primary_key=True)
    turn = models.CharField(max_length=20)
    part = models.PositiveIntegerField()
    conversation = models.ForeignKey(
        Conversation, verbose_name=_("conversation"), on_delete=models.CASCADE, related_name="turns"
    )
    end = models.CharField(_("end"), max_length=12, choices=ENDS)
    endpoint = models.CharField(_("endpoint"), max_length=80, blank=True)
    handle = models.PositiveBigIntegerField(default=0)  # as the sockets named it
    stages = models.JSONField(default=list)  # [name, start_ms, ms] of every stage, in their order
    marks = models.JSONField(default=dict)
    gaps = models.JSONField(default=list)  # counts by the classes of GAP_BOUNDS_MS
    ttft_ms = models.FloatField(null=True)  # from the question, or its part's beginning
    added_ms = models.FloatField(null=True)  # what we add to the model's own time
    painted_ms = models.FloatField(null=True)  # submit to the first visible text, as the client reports
    prompt_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [models.UniqueConstraint(fields=["turn", "part"], name="one_row_a_turn_part")]
        indexes = [models.Index(fields=["created_at"], name="turns_by_time")]

    def __str__(self) -> str:
        return f"{self.turn} {self.get_end_display()}"

    @property
    def first_frame_ms(self) -> float:
        """Receipt of the question to the first frame on its way; 0 where there was none."""
        return next((start + ms for name, start, ms in self.stages if name == "first_frame"), 0.0)

    def bars(self) -> list[Bar]:
        """The stages, with the paint where it has been reported."""
        bars = [Bar(name, start_ms, ms) for name, start_ms, ms in self.stages]
        paint = paint_bar(self.first_frame_ms, self.painted_ms)
        return [paint if bar.name == "painted" else bar for bar in bars]


class LearnedRequests(models.Model):
    """A site's predictor of the next request, as the worker last learned it. Sites that moved raise their version."""

    site = models.OneToOneField(Site, on_delete=models.CASCADE, primary_key=True, related_name="+")
    predictor = models.BinaryField()  # zlib of `Predictor.dump`
    pause_s = models.FloatField()
    conversations = models.PositiveIntegerField()
    newest_at = models.DateTimeField()
    learned_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.site_id} from {self.conversations}"


class ProcessLease(models.Model):
    """A web process that runs turns, and when it last said so by the database's clock."""

    process = models.CharField(primary_key=True, max_length=20)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.process
