"""Pages of rules: write with help at hand, and try all rules of a site on a sample question."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from apps.accounts.staff import ScopedAdmin, SiteQuestionForm
from apps.engine.rules import Decision, RuleInput
from apps.engine.types import Facts, FactsState, Order, Profile
from apps.rulebook.models import Rule
from apps.rulebook.resident import RuleResident
from apps.rulebook.vocabulary import VARIABLES

EXAMPLES = (
    (
        _("Gold customers who mention a refund"),
        'tier == "gold" && (text_lower.contains("refund") || text_lower.contains("退款"))',
    ),
    (
        _("A parcel on its way, asked about in Chinese"),
        'locale == "zh" && "in_transit" in order_statuses && text.contains("快递")',
    ),
    (_("Any of several words"), 'text_lower.matches("lawyer|sue you|court|律师|起诉")'),
    (_("Somebody who keeps asking at night"), "turn_number > 5 && !within_hours"),
    (_("What the shop tells besides"), "attributes.vip == true"),
)


class TryForm(SiteQuestionForm):
    asked = "text"
    text = forms.CharField(
        label=_("Message"), max_length=4_000, widget=UnfoldAdminTextareaWidget(attrs={"rows": 2})
    )
    locale = forms.ChoiceField(
        label=_("Language"), choices=(("en", "English"), ("zh", "简体中文")), widget=UnfoldAdminSelectWidget
    )
    tier = forms.CharField(
        label=_("Tier"),
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("Empty for a visitor."),
    )
    order_status = forms.CharField(
        label=_("Status of an order"), required=False, widget=UnfoldAdminTextInputWidget,
        help_text=_("Such as in_transit; empty for no orders."),
    )  # fmt: skip
    turn_number = forms.IntegerField(
        label=_("Question number"), initial=1, min_value=1, widget=UnfoldAdminIntegerFieldWidget
    )
    within_hours = forms.BooleanField(
        label=_("In business hours"), required=False, initial=True, widget=UnfoldBooleanWidget
    )


@admin.register(Rule)
class RuleAdmin(ScopedAdmin):
    workspace_path = "site__workspace_id"
    list_display = ("name", "position", "enabled", "site", "does", "updated_at")
    list_filter = ("site", "enabled", "team")
    list_select_related = ("site", "team")
    search_fields = ("name", "condition", "tag")
    ordering = ("site", "position", "pk")
    actions_list = ("try_rules",)
    change_form_after_template = "admin/rule_help.html"
    fieldsets = (
        (None, {"fields": (("site", "name"), ("position", "enabled"))}),
        (_("When"), {"fields": ("condition",)}),
        (
            _("Then"),
            {"fields": (("reply_en", "reply_zh"), ("handoff", "team"), "tag", "instruction")},
        ),
    )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        meanings = [(name, gettext(meaning)) for name, meaning in VARIABLES.items()]
        help_context = {"examples": EXAMPLES, "variables": meanings}
        return super().changeform_view(
            request, object_id, form_url, {**(extra_context or {}), **help_context}
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Rule | None = None) -> tuple[str, ...]:
        return ("site",) if obj else ()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Rule]) -> None:
        for rule in queryset:
            rule.delete()  # one by one: each announces itself

    @display(description=_("Does"))
    def does(self, rule: Rule) -> str:
        team = rule.team.name if rule.team else gettext("anybody")
        parts = [
            gettext("replies") if rule.reply_en or rule.reply_zh else "",
            gettext("hands over to %(team)s") % {"team": team} if rule.handoff else "",
            gettext("tags %(tag)s") % {"tag": rule.tag} if rule.tag else "",
            gettext("instructs the model") if rule.instruction else "",
        ]
        return ", ".join(part for part in parts if part)

    @action(description=_("Try a message"), url_path="try", icon="science")
    def try_rules(self, request: HttpRequest) -> HttpResponse:
        """What the enabled rules of a site decide for a message; nothing is stored."""
        form = TryForm(self, request)
        return self.page_beside(
            request,
            "admin/try_rules.html",
            title=gettext("What would the rules do?"),
            form=form,
            decision=_decision(form.cleaned_data) if form.is_valid() else None,
        )


def _decision(given: dict[str, Any]) -> Decision:
    verified = bool(given["tier"] or given["order_status"])
    facts = Facts(
        verified=verified,
        state=FactsState.WARM if verified else FactsState.NONE,
        profile=Profile("", tier=given["tier"]) if verified else None,
        orders=(Order("1042", given["order_status"], ""),) if given["order_status"] else (),
    )
    return (
        RuleResident()
        .load(given["site"].pk)
        .decide(RuleInput(given["text"], given["locale"], given["turn_number"], facts, given["within_hours"]))
    )
