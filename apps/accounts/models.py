"""Workspaces, the people who work in them, and the sites whose customers they serve."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from apps.stores.ids import new_id, new_secret
from apps.stores.sealed import SealedText
from apps.stores.switch import switch

WEEKDAYS = 7

# A site's version counters: what of it was edited.
Counter: TypeAlias = Literal["settings_version", "rules_version", "knowledge_version", "learned_version"]


def validate_hours(value: object) -> None:
    """Seven entries from Monday: "09:00-17:30", or "" for a closed day."""
    pattern = re.compile(r"^(|([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)$")
    if not isinstance(value, list) or len(value) != WEEKDAYS:
        raise ValidationError(_("Give seven entries, Monday first."))
    for entry in value:
        if not isinstance(entry, str) or not pattern.match(entry) or (entry and entry[:5] >= entry[6:]):
            raise ValidationError(
                _("“%(entry)s” is not like 09:00-17:30 (or empty for a closed day)."), params={"entry": entry}
            )


def validate_origins(value: object) -> None:
    """A list of exact origins: scheme and host, port where it is not the usual one, nothing behind."""
    if not isinstance(value, list):
        raise ValidationError(_("Give a list of origins."))
    for origin in value:
        parts = urlsplit(str(origin))
        if (
            parts.scheme not in ("http", "https")
            or not parts.netloc
            or f"{parts.scheme}://{parts.netloc}" != origin
        ):
            raise ValidationError(
                _("“%(origin)s” is not an origin like https://shop.example."), params={"origin": origin}
            )


def validate_accent(value: str) -> None:
    """A colour on which white text stays readable (contrast at least 4.5:1, WCAG 2.1 relative luminance)."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", value):
        raise ValidationError(_("Write the colour as #rrggbb."))
    channels = [int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    if 1.05 / (luminance + 0.05) < 4.5:
        raise ValidationError(_("White text on this colour is hard to read; choose a darker one."))


def usual_hours() -> list[str]:
    """From Monday on; "" where nobody is there all day."""
    return ["09:00-17:30"] * 5 + ["", ""]


class Workspace(models.Model):
    """One company's customer service. Every selector is scoped by it."""

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    name = models.CharField(_("name"), max_length=120)
    hours = models.JSONField(
        _("opening hours"),
        default=usual_hours,
        validators=[validate_hours],
        help_text=_("Monday first; empty is closed."),
    )
    timezone = models.CharField(_("time zone"), max_length=64, default="UTC")

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")

    def __str__(self) -> str:
        return self.name


class AnswerCacheMode(models.TextChoices):
    """Which questions get an answer again that was given before."""

    OFF = "off", _("None")
    EXACT = "exact", _("The same words")
    FULL = "full", _("The same question, in other words too")


class Site(models.Model):
    """A place where the widget is embedded. `id` is the public key of the snippet."""

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    workspace = models.ForeignKey(
        Workspace, verbose_name=_("workspace"), on_delete=models.CASCADE, related_name="sites"
    )
    name = models.CharField(_("name"), max_length=120)
    allowed_origins = models.JSONField(_("allowed origins"), default=list, validators=[validate_origins])
    accent = models.CharField(
        _("accent colour"), max_length=7, default="#2f5bea", validators=[validate_accent]
    )
    greeting_en = models.CharField(_("greeting, English"), max_length=300, default="Hello! How can we help?")
    greeting_zh = models.CharField(_("greeting, Chinese"), max_length=300, default="您好！有什么可以帮您？")
    suggestions_en = models.JSONField(
        _("suggested questions, English"),
        default=list,
        blank=True,
        help_text=_("Up to three questions shown before the first message."),
    )
    suggestions_zh = models.JSONField(_("suggested questions, Chinese"), default=list, blank=True)
    assistant_name = models.CharField(_("assistant's name"), max_length=60, default="Assistant")
    assistant_enabled = models.BooleanField(_("assistant answers"), default=True)
    answer_cache = models.CharField(
        _("answers given again"),
        max_length=5,
        choices=AnswerCacheMode.choices,
        default=AnswerCacheMode.FULL,
        db_default=AnswerCacheMode.FULL,  # processes of the version before still create sites
        help_text=_(
            "Visitors who ask what others asked before read the same answer at once, for a day or until an article, a"
            " rule or a setting changes. Questions about orders and people are always answered anew."
        ),
    )
    instructions = models.TextField(
        _("instructions"), blank=True, help_text=_("Told to the model in every conversation of this site.")
    )
    daily_spend_cap = models.DecimalField(
        _("daily spend cap"),
        max_digits=9,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_(
            "In the currency of the endpoints' prices. Once reached, the builtin assistant answers until midnight UTC."
        ),
    )
    prefetch = switch(
        _("prepares for the next question"),
        _(
            "Fetches a known customer's orders again while they read an answer, when earlier conversations say that "
            "the next question will need them."
        ),
    )
    reads_drafts = switch(
        _("begins while the customer types"),
        _(
            "Sends what a customer is writing while they type, so that articles and orders are ready when they press "
            "send. The widget says so. A draft is never stored, logged or shown to anyone."
        ),
    )
    speculation_tokens = models.PositiveIntegerField(
        _("tokens a minute for answers begun early"),
        default=0,
        db_default=0,
        help_text=_(
            "0: off. Else, where it also begins while the customer types, the answer to what is written is begun once"
            " the customer rests, and shown only if that very text is sent. Whatever is sent otherwise was paid for in"
            " vain, often several times a question. Counts prompt and answer, for each web process; 30,000 is about"
            " ten answers."
        ),
    )
    identity_secret = SealedText(
        default=new_secret, editable=False, help_text=_("Signs the tokens of known customers (HS256).")
    )
    # Bumped by every change that residents must load: site settings, endpoints, rules, knowledge, what was learned.
    settings_version = models.PositiveBigIntegerField(default=1, editable=False)
    rules_version = models.PositiveBigIntegerField(default=1, editable=False)
    knowledge_version = models.PositiveBigIntegerField(default=1, editable=False)
    learned_version = models.PositiveBigIntegerField(default=1, db_default=1, editable=False)

    class Meta:
        verbose_name = _("site")
        verbose_name_plural = _("sites")

    def __str__(self) -> str:
        return self.name


class Team(models.Model):
    """Where a conversation can be sent. Named to the model and to rules by its name."""

    workspace = models.ForeignKey(
        Workspace, verbose_name=_("workspace"), on_delete=models.CASCADE, related_name="teams"
    )
    name = models.CharField(_("name"), max_length=80)

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="one_team_name_a_workspace")
        ]

    def __str__(self) -> str:
        return self.name


class Agent(models.Model):
    """A human who answers. Logs in as a Django user; deactivating either locks the agent out."""

    class Role(models.TextChoices):
        AGENT = "agent", _("Agent")
        ADMIN = "admin", _("Admin")

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    workspace = models.ForeignKey(
        Workspace, verbose_name=_("workspace"), on_delete=models.CASCADE, related_name="agents"
    )
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, verbose_name=_("user"), on_delete=models.CASCADE, related_name="agent"
    )
    name = models.CharField(_("name"), max_length=80, help_text=_("As customers see it."))
    role = models.CharField(_("role"), max_length=8, choices=Role.choices, default=Role.AGENT)
    active = models.BooleanField(_("active"), default=True)
    teams = models.ManyToManyField(Team, verbose_name=_("teams"), blank=True, related_name="agents")

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")

    def __str__(self) -> str:
        return self.name


def bump(site: Site | str, counter: Counter) -> None:
    """Announces an edit to every resident that the counter stands for. One query."""
    Site.objects.filter(pk=site if isinstance(site, str) else site.pk).update(**{counter: F(counter) + 1})
