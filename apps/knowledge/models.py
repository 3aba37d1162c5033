"""Articles of a site and the passages they were cut into. Only `ingestion.py` writes passages."""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxLengthValidator
from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Site

MAX_BODY_CHARACTERS = 30_000


class Article(models.Model):
    """A help text in Markdown. The same `slug` in two locales is the same text in two languages.

    `revision` grows with every save; what is searched is `ingested_revision`.
    """

    class Locale(models.TextChoices):
        ENGLISH = "en", "English"
        CHINESE = "zh", "简体中文"

    site = models.ForeignKey(Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="articles")
    slug = models.SlugField(
        _("slug"), max_length=80, help_text=_("The same in every language of this article.")
    )
    locale = models.CharField(_("language"), max_length=16, choices=Locale.choices, default=Locale.ENGLISH)
    title = models.CharField(_("title"), max_length=160)
    body = models.TextField(
        _("text"),
        validators=[MaxLengthValidator(MAX_BODY_CHARACTERS)],
        help_text=_(
            "Markdown. The assistant quotes section by section: give each question a heading of its own."
        ),
    )
    url = models.URLField(
        _("address"),
        blank=True,
        help_text=_("Where customers can read it, if it is also published on your site."),
    )
    published = models.BooleanField(
        _("published"), default=True, help_text=_("Only published articles are searched.")
    )
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    revision = models.PositiveBigIntegerField(default=0, editable=False)
    ingested_revision = models.PositiveBigIntegerField(default=0, editable=False)
    ingest_failures = models.PositiveIntegerField(default=0, editable=False)
    # A task that works on the article, or failed at it, keeps the others away until then.
    ingest_after = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("article")
        verbose_name_plural = _("articles")
        constraints = [
            models.UniqueConstraint(fields=["site", "locale", "slug"], name="one_article_a_slug_and_locale"),
        ]
        ordering = ["site", "slug", "locale"]

    def __str__(self) -> str:
        return self.title

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Marks the article as not yet ingested. Two queries."""
        self.revision = self.revision + 1 if self._state.adding else F("revision") + 1
        self.ingest_after = None
        self.ingest_failures = 0
        super().save(*args, **kwargs)
        self.refresh_from_db(fields=["revision"])


class Chunk(models.Model):
    """A passage of an article with its embedding: little-endian float32, unit length; empty if none."""

    article = models.ForeignKey(Article, on_delete=models.CASCADE, related_name="chunks")
    position = models.PositiveIntegerField()
    heading = models.CharField(max_length=500, blank=True)
    text = models.TextField()
    embedding = models.BinaryField(blank=True)
    model = models.CharField(max_length=64, blank=True, help_text=_("Which model made the embedding."))
    # Of model and text: an unchanged passage keeps its embedding.
    digest = models.CharField(max_length=32)

    class Meta:
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [models.UniqueConstraint(fields=["article", "position"], name="one_chunk_a_position")]
        ordering = ["article", "position"]

    def __str__(self) -> str:
        return self.heading or self.text[:60]
