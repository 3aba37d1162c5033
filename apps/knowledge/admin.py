"""Pages of articles: write, see what was made of them, and try what the assistant would find."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextInputWidget

from apps.accounts.models import Site
from apps.accounts.staff import ScopedAdmin, SiteQuestionForm
from apps.engine.types import Passage
from apps.knowledge.articles import delete_articles, save_article
from apps.knowledge.embeddings import EmbedderBusy, process_embedder
from apps.knowledge.models import Article
from apps.knowledge.preview import article_html
from apps.knowledge.resident import load_corpus


class SearchForm(SiteQuestionForm):
    asked = "question"
    question = forms.CharField(
        label=_("Question"), max_length=500, widget=UnfoldAdminTextInputWidget,
        help_text=_("As a customer would ask it, in any language."),
    )  # fmt: skip


@admin.register(Article)
class ArticleAdmin(ScopedAdmin):
    workspace_path = "site__workspace_id"
    list_display = ("title", "locale", "site", "published", "search_state", "passage_count", "updated_at")
    list_filter = ("site", "locale", "published")
    list_select_related = ("site",)
    search_fields = ("title", "slug", "body")
    ordering = ("title",)
    actions_list = ("try_search",)
    prepopulated_fields = {"slug": ("title",)}
    fieldsets = (
        (None, {"fields": (("site", "locale"), ("title", "slug"), "body", ("url", "published"))}),
        (_("Preview"), {"fields": ("preview",)}),
        (_("What is searched"), {"fields": ("search_text", "passages")}),
    )
    readonly_fields = ("preview", "search_text", "passages")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Article]:
        rows: QuerySet[Article] = super().get_queryset(request)
        return rows.annotate(passages_counted=Count("chunks"))

    def get_readonly_fields(self, request: HttpRequest, obj: Article | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "site") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Article, form: Any, change: bool) -> None:
        save_article(obj)

    def delete_model(self, request: HttpRequest, obj: Article) -> None:
        delete_articles([obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Article]) -> None:
        delete_articles(queryset)

    @display(
        description=_("Search"),
        label={"ready": "success", "waiting": "warning", "failing": "danger", "off": ""},
    )
    def search_state(self, article: Article) -> tuple[str, str]:
        return _search_state(article)

    @display(description=_("Search"))
    def search_text(self, article: Article) -> str:
        return _search_state(article)[1]

    @display(description=_("Passages"))
    def passage_count(self, article: Any) -> int:
        return int(article.passages_counted)

    @display(description="")
    def preview(self, article: Article) -> str:
        return render_to_string("admin/article_preview.html", {"html": article_html(article.body)})

    @display(description=_("Passages"))
    def passages(self, article: Article) -> str:
        rows = article.chunks.all() if article.pk else ()
        return render_to_string("admin/article_passages.html", {"passages": rows})

    @action(description=_("Try a question"), url_path="try", icon="search")
    def try_search(self, request: HttpRequest) -> HttpResponse:
        """What the assistant would find for a question; nothing is stored."""
        form = SearchForm(self, request)
        return self.page_beside(
            request,
            "admin/try_search.html",
            title=gettext("What would the assistant find?"),
            form=form,
            asked=form.is_valid(),
            found=_found(**form.cleaned_data) if form.is_valid() else (),
        )


def _search_state(article: Article) -> tuple[str, str]:
    if article.ingested_revision == article.revision:
        return ("ready", gettext("Ready")) if article.published else ("off", gettext("Not searched"))
    if article.ingest_failures > 1:  # the first attempt counts from its begin
        return "failing", gettext("Failing, tried again soon")
    return "waiting", gettext("Waiting for the worker")


def _found(site: Site, question: str) -> tuple[Passage, ...]:
    corpus = load_corpus(site.pk)
    try:
        vector = process_embedder().embed_question(question)
    except EmbedderBusy:
        vector = None
    return corpus.passages(question, vector, "en", limit=4)
