"""Pages of model endpoints and of what they cost."""

from __future__ import annotations

import datetime as dt
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from apps.accounts.fields import WriteOnlyField, WriteOnlyForm
from apps.accounts.models import bump
from apps.accounts.staff import ReadOnlyAdmin, ScopedAdmin
from apps.llm import records
from apps.llm.advice import advice, banners, in_short
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.pool import standing_here
from apps.llm.probe import probe

TEST_BUTTON = "llm_modelendpoint_test_connection"  # unfold's name for the action below


class ModelEndpointForm(WriteOnlyForm):
    write_only = ("api_key",)
    sent_to = "base_url"
    api_key = WriteOnlyField(label=_("API key"))

    class Meta:
        model = ModelEndpoint
        fields = (
            "site", "name", "enabled", "priority", "provider", "dialect", "base_url", "api_key", "model", "region",
            "http2", "max_concurrent", "max_output_tokens", "price_in", "price_out", "extra_body", "continue_chains",
            "keep_responses", "prepare_prompts",
        )  # fmt: skip
        labels = {
            "base_url": _("Address"), "max_output_tokens": _("Tokens of an answer"), "extra_body": _("More fields"),
            "max_concurrent": _("Answers at a time"), "price_in": _("Price, prompt"), "price_out": _("Price, answer"),
        }  # fmt: skip

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        return url.strip().rstrip("/").removesuffix("/chat/completions").removesuffix("/responses")


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(ScopedAdmin):
    """Every edit bumps the site's settings version, so that web processes load it within a second."""

    workspace_path = "site__workspace_id"
    form = ModelEndpointForm
    list_display = ("name", "site", "model", "priority", "enabled", "state")
    list_filter = ("site", "enabled")
    list_select_related = ("site",)
    search_fields = ("name", "model")
    list_before_template = "admin/endpoint_banners.html"
    change_form_outer_before_template = "admin/endpoint_banners.html"
    actions_submit_line = ("test_connection",)
    readonly_fields = ("state_in_words", "standing")
    fieldsets = (
        (
            None,
            {"fields": (("site", "name"), ("enabled", "priority"), "state_in_words", "standing")},
        ),
        (_("Server"), {"fields": ("base_url", "api_key", "model", ("provider", "dialect"))}),
        (
            _("Limits and prices"),
            {"fields": (("max_output_tokens", "max_concurrent"), ("price_in", "price_out"))},
        ),
        (
            _("Advanced"),
            {
                "fields": (
                    "region",
                    "http2",
                    "extra_body",
                    "continue_chains",
                    "keep_responses",
                    "prepare_prompts",
                ),
                "classes": ("collapse",),
            },
        ),
    )

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        ailing = self.get_queryset(request) & ModelEndpoint.ailing()
        response: HttpResponse = super().changelist_view(
            request, {**(extra_context or {}), "banners": banners(ailing)}
        )
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], obj: ModelEndpoint | None = None, **kwargs: Any
    ) -> HttpResponse:
        context["banners"] = banners([obj] if obj else [])
        response: HttpResponse = super().render_change_form(request, context, obj=obj, **kwargs)
        return response

    def save_model(self, request: HttpRequest, obj: ModelEndpoint, form: Any, change: bool) -> None:
        if {"base_url", "api_key", "model"} & set(form.changed_data):
            obj.last_error_kind, obj.last_error_at = "", None  # said of another server or key
        super().save_model(request, obj, form, change)
        bump(obj.site_id, "settings_version")
        if "site" in form.initial and form.initial["site"] != obj.site_id:
            bump(form.initial["site"], "settings_version")

    def response_post_save_change(self, request: HttpRequest, obj: ModelEndpoint) -> HttpResponse:
        return self._after_test(request, obj) or super().response_post_save_change(request, obj)

    def response_post_save_add(self, request: HttpRequest, obj: ModelEndpoint) -> HttpResponse:
        return self._after_test(request, obj) or super().response_post_save_add(request, obj)

    def _after_test(self, request: HttpRequest, obj: ModelEndpoint) -> HttpResponse | None:
        """Whoever tests stays on the page, to try again."""
        if TEST_BUTTON not in request.POST:
            return None
        return redirect("admin:llm_modelendpoint_change", obj.pk)

    def delete_model(self, request: HttpRequest, obj: ModelEndpoint) -> None:
        site_id = obj.site_id
        super().delete_model(request, obj)
        bump(site_id, "settings_version")

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ModelEndpoint]) -> None:
        sites = set(queryset.values_list("site_id", flat=True))
        super().delete_queryset(request, queryset)
        for site_id in sites:
            bump(site_id, "settings_version")

    @action(description=_("Save and test connection"))
    def test_connection(self, request: HttpRequest, obj: ModelEndpoint) -> None:
        """Asks the saved endpoint one real question and tells what came of it.

        After the commit: SQLite's write lock must not be held while a model thinks.
        """
        transaction.on_commit(lambda: self._test(request, obj))

    def _test(self, request: HttpRequest, obj: ModelEndpoint) -> None:
        outcome = async_to_sync(probe)(records.spec_of(obj))
        if outcome.failure:
            records.note_failure(obj.pk, outcome.failure)
            told = (
                f"{advice(outcome.failure)} ({outcome.detail})" if outcome.detail else advice(outcome.failure)
            )
            messages.error(request, gettext("%(model)s did not answer.") % {"model": obj.model} + f" {told}")
            return
        records.note_success(obj.pk)
        if outcome.first_ms is None:
            messages.success(request, gettext("%(model)s answers, but only thought.") % {"model": obj.model})
        else:
            told = gettext("%(model)s answers. First words after %(ms)d ms.")
            messages.success(request, told % {"model": obj.model, "ms": outcome.first_ms})

    @display(description=_("State"), label={"ok": "success", "failing": "danger", "new": ""})
    def state(self, endpoint: ModelEndpoint) -> tuple[str, str]:
        if endpoint.failing:
            return "failing", in_short(endpoint.last_error_kind)
        return ("ok", gettext("Answers")) if endpoint.last_ok_at else ("new", gettext("Not asked yet"))

    @display(description=_("State"))
    def state_in_words(self, endpoint: ModelEndpoint) -> str:
        if endpoint.failing:
            return f"{advice(endpoint.last_error_kind)} ({_when(endpoint.last_error_at)})"
        if endpoint.last_ok_at:
            return gettext("Answers; last noted %(when)s.") % {"when": _when(endpoint.last_ok_at)}
        return gettext("Not asked yet")

    @display(description=_("In this web process"))
    def standing(self, endpoint: ModelEndpoint) -> str:
        here = standing_here(endpoint.pk)
        if here is None:
            return gettext("Not connected")
        told = gettext(
            "%(open)d connections open, %(wanted)d wanted by its load; %(running)d answers running."
        )
        return told % {"open": here.open, "wanted": here.wanted, "running": here.in_flight}


def _when(moment: dt.datetime | None) -> str:
    return date_format(timezone.localtime(moment), "SHORT_DATETIME_FORMAT") if moment else ""


@admin.register(DailySpend)
class DailySpendAdmin(ReadOnlyAdmin):
    workspace_path = "site__workspace_id"
    list_display = ("day", "site", "prompt_tokens", "completion_tokens", "rounded_cost")
    list_filter = ("site", "day")
    list_select_related = ("site",)
    date_hierarchy = "day"
    fields = ("site", "day", "prompt_tokens", "completion_tokens", "cost")
    readonly_fields = fields

    @display(description=_("Cost"), ordering="cost")
    def rounded_cost(self, spend: DailySpend) -> str:
        return f"{spend.cost:.2f}"
