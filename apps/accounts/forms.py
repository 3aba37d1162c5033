"""Forms of the accounts pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminColorInputWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from apps.accounts.fields import HoursField, LinesField, OriginsField, TimezoneField
from apps.accounts.models import Agent, Site, Workspace

SUGGESTIONS = 3


class WorkspaceForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    timezone = TimezoneField(label=_("Time zone"), help_text=_("The opening hours are in this zone."))
    hours = HoursField(
        label=_("Opening hours"), help_text=_("When people answer. Leave both times empty for a closed day.")
    )

    class Meta:
        model = Workspace
        fields = ("name", "timezone", "hours")


class SiteForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    allowed_origins = OriginsField(
        label=_("Allowed origins"),
        required=False,
        help_text=_("Pages that may show the widget, one a line, such as https://shop.example."),
    )
    suggestions_en = LinesField(
        label=_("Suggested questions, English"), required=False, most=SUGGESTIONS, longest=80,
        help_text=_("Up to three, one a line, shown before the first message."),
    )  # fmt: skip
    suggestions_zh = LinesField(
        label=_("Suggested questions, Chinese"), required=False, most=SUGGESTIONS, longest=80,
        help_text=_("Up to three, one a line, shown before the first message."),
    )  # fmt: skip

    class Meta:
        model = Site
        fields = (
            "workspace", "name", "allowed_origins", "accent", "greeting_en", "greeting_zh", "suggestions_en",
            "suggestions_zh", "assistant_name", "assistant_enabled", "instructions", "answer_cache",
            "daily_spend_cap", "prefetch", "reads_drafts", "speculation_tokens",
        )  # fmt: skip
        widgets = {
            "accent": UnfoldAdminColorInputWidget(attrs={"type": "color"}),
            "greeting_en": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "greeting_zh": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        }


def _password_field(label: Any, *, required: bool, help_text: Any = "") -> forms.CharField:
    widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, widget=widget, strip=False, required=required, help_text=help_text)


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """An agent who exists already; a new password only where one is typed."""

    new_password = _password_field(
        _("New password"),
        required=False,
        help_text=_("Leave empty to keep the present one. Ends all sessions."),
    )

    class Meta:
        model = Agent
        fields = ("name", "role", "teams", "active")

    def clean_new_password(self) -> str:
        password: str = self.cleaned_data["new_password"]
        if password:
            validate_password(password, self.instance.user)
        return password

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if cleaned is not None:
            _check_teams(cleaned, cleaned.get("workspace") or getattr(self.instance, "workspace", None))
        return cleaned


class NewAgentForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """An agent and the user they log in as, in one go."""

    username = forms.CharField(
        label=_("Log-in name"),
        max_length=150,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    password = _password_field(
        _("Password"), required=True, help_text=_("At least 8 characters; not a common one.")
    )

    class Meta:
        model = Agent
        fields = ("workspace", "name", "role", "teams")

    def clean_username(self) -> str:
        username: str = User.normalize_username(self.cleaned_data["username"])
        User.username_validator(username)
        if User.objects.filter(username__iexact=username).exists():
            raise ValidationError(_("This log-in name is taken."))
        return username

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if cleaned is None:
            return cleaned
        _check_teams(cleaned, cleaned.get("workspace"))
        if cleaned.get("username") and cleaned.get("password"):
            try:
                validate_password(cleaned["password"], User(username=cleaned["username"]))
            except ValidationError as error:
                self.add_error("password", error)
        return cleaned


def _check_teams(cleaned: dict[str, Any], workspace: Workspace | None) -> None:
    teams = cleaned.get("teams") or ()
    if workspace is not None and any(team.workspace_id != workspace.pk for team in teams):
        raise ValidationError({"teams": _("Choose teams of the agent's own workspace.")})
