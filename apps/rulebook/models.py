"""Rules of a site: when a condition holds, say, hand over, tag or instruct."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Site, Team, bump
from apps.rulebook.compiler import MAX_CONDITION_CHARACTERS, RefusedCondition, compile_condition


class Rule(models.Model):
    """Rules apply from the lowest position up: the first reply and the first handoff win, the rest adds up."""

    site = models.ForeignKey(Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="rules")
    name = models.CharField(
        _("name"), max_length=80, help_text=_("Shown in the trace of every turn it acts on.")
    )
    position = models.PositiveIntegerField(
        _("position"), default=100, help_text=_("Lower numbers come first.")
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    condition = models.TextField(
        _("condition"),
        max_length=MAX_CONDITION_CHARACTERS,
        help_text=_('For example: tier == "gold" && text_lower.contains("refund")'),
    )
    reply_en = models.TextField(
        _("reply in English"),
        max_length=2_000,
        blank=True,
        help_text=_("Said instead of the model's answer."),
    )
    reply_zh = models.TextField(_("reply in Chinese"), max_length=2_000, blank=True)
    handoff = models.BooleanField(_("hand over to a person"), default=False)
    # A workspace that is deleted takes both along; a team in use cannot be deleted alone.
    team = models.ForeignKey(
        Team, verbose_name=_("team"), on_delete=models.RESTRICT, null=True, blank=True, related_name="rules"
    )
    tag = models.CharField(_("tag"), max_length=40, blank=True)
    instruction = models.TextField(
        _("instruction"), max_length=1_000, blank=True, help_text=_("Told to the model for this answer.")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("rule")
        verbose_name_plural = _("rules")
        constraints = [models.UniqueConstraint(fields=["site", "name"], name="one_rule_name_a_site")]
        ordering = ["site", "position", "pk"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Saves and bumps `rules_version` in one transaction."""
        with transaction.atomic():
            super().save(*args, **kwargs)
            bump(self.site_id, "rules_version")

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Deletes and bumps `rules_version` in one transaction."""
        with transaction.atomic():
            deleted = super().delete(*args, **kwargs)
            bump(self.site_id, "rules_version")
        return deleted

    def clean(self) -> None:
        """Raises `ValidationError` for a condition that cannot be asked, or a rule that does nothing."""
        super().clean()
        try:
            compile_condition(self.condition)
        except RefusedCondition as refused:
            raise ValidationError({"condition": str(refused)}) from refused
        if not (self.reply_en or self.reply_zh or self.handoff or self.tag or self.instruction):
            raise ValidationError(
                "Give the rule something to do: a reply, a handover, a tag or an instruction."
            )
        if self.team and not self.handoff:
            raise ValidationError({"team": "A team takes over only if the rule hands over."})
        if self.team and self.site_id and self.team.workspace_id != self.site.workspace_id:
            raise ValidationError({"team": "This team belongs to another workspace."})
