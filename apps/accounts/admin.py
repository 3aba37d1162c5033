"""Pages of workspaces, sites, teams, agents and users."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts.agents import agent_for_user, create_login, save_agent
from apps.accounts.forms import AgentForm, NewAgentForm, SiteForm, WorkspaceForm
from apps.accounts.models import Agent, Site, Team, Workspace, bump
from apps.accounts.sites import rotate_identity_secret
from apps.accounts.staff import ScopedAdmin, is_superuser

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(Workspace)
class WorkspaceAdmin(ScopedAdmin):
    workspace_path = "pk"
    may_delete = False
    form = WorkspaceForm
    list_display = ("name", "timezone", "site_count", "agent_count")
    search_fields = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workspace]:
        counts = {name: Count(name, distinct=True) for name in ("sites", "agents")}
        rows: QuerySet[Workspace] = super().get_queryset(request)
        return rows.annotate(**{f"{name}_counted": count for name, count in counts.items()})

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        return is_superuser(request)

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for site in obj.sites.all():
            bump(site, "settings_version")  # the hours are part of what a site's residents hold

    @display(description=_("Sites"))
    def site_count(self, workspace: Any) -> int:
        return int(workspace.sites_counted)

    @display(description=_("Agents"))
    def agent_count(self, workspace: Any) -> int:
        return int(workspace.agents_counted)


@admin.register(Site)
class SiteAdmin(ScopedAdmin):
    workspace_path = "workspace_id"
    form = SiteForm
    list_display = ("name", "workspace", "assistant_switch", "daily_spend_cap", "origin_count")
    list_filter = ("workspace", "assistant_enabled")
    list_select_related = ("workspace",)
    search_fields = ("name", "id")
    change_form_outer_before_template = "admin/site_snippet.html"
    actions_detail = ("rotate_secret",)
    fieldsets = (
        (None, {"fields": ("workspace", "name", "allowed_origins")}),
        (
            _("Assistant"),
            {
                "fields": (
                    "assistant_enabled",
                    "assistant_name",
                    "instructions",
                    "answer_cache",
                    "daily_spend_cap",
                    "prefetch",
                    "reads_drafts",
                    "speculation_tokens",
                )
            },
        ),
        (
            _("Widget"),
            {"fields": ("accent", ("greeting_en", "greeting_zh"), ("suggestions_en", "suggestions_zh"))},
        ),
    )

    def save_model(self, request: HttpRequest, obj: Site, form: Any, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        # Only the columns of the form: a version bumped meanwhile, or a rotated secret, must not be written back.
        obj.save(update_fields=[name for name in form.fields if name in form.cleaned_data])
        bump(obj, "settings_version")

    @display(description=_("Assistant"), label={"on": "success", "off": "warning"})
    def assistant_switch(self, site: Site) -> tuple[str, str]:
        return ("on", gettext("On")) if site.assistant_enabled else ("off", gettext("Off"))

    @display(description=_("Allowed origins"))
    def origin_count(self, site: Site) -> int:
        return len(site.allowed_origins)

    @action(description=_("Rotate identity secret"), url_path="rotate-secret", icon="key")
    def rotate_secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks first; the new secret is in the answer to the confirmation and never shown again."""
        site = get_object_or_404(self.get_queryset(request), pk=object_id)
        secret = ""
        if request.method == "POST":
            secret = rotate_identity_secret(site)
            self.log_change(request, site, gettext("Rotated the identity secret."))
        return self.page_beside(
            request,
            "admin/rotate_secret.html",
            title=gettext("Rotate identity secret"),
            original=site,
            secret=secret,
        )


@admin.register(Team)
class TeamAdmin(ScopedAdmin):
    workspace_path = "workspace_id"
    list_display = ("name", "workspace", "members")
    list_filter = ("workspace",)
    list_select_related = ("workspace",)
    search_fields = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        rows: QuerySet[Team] = super().get_queryset(request)
        return rows.annotate(agents_counted=Count("agents"))

    @display(description=_("Agents"))
    def members(self, team: Any) -> int:
        return int(team.agents_counted)


@admin.register(Agent)
class AgentAdmin(ScopedAdmin):
    """Agents are deactivated, never deleted: what they wrote keeps its author."""

    workspace_path = "workspace_id"
    may_delete = False
    form = AgentForm
    list_display = ("name", "login", "workspace", "role_label", "in_teams", "active")
    list_filter = ("workspace", "role", "active", "teams")
    list_select_related = ("workspace", "user")
    search_fields = ("name", "user__username")
    filter_horizontal = ()
    actions = ("deactivate", "activate")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        rows: QuerySet[Agent] = super().get_queryset(request)
        return rows.prefetch_related("teams")

    def get_form(
        self, request: HttpRequest, obj: Agent | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = AgentForm if obj else NewAgentForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[str]:
        if obj is None:
            return ["workspace", "name", "username", "password", "role", "teams"]
        return [
            "login",
            "name",
            "role",
            "teams",
            "active",
            *(["new_password"] if _may_reset(request, obj) else []),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> tuple[str, ...]:
        return () if obj is None else ("login",)

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        if not change:
            obj.user = create_login(form.cleaned_data["username"], form.cleaned_data["password"])
        elif form.cleaned_data.get("new_password") and _may_reset(request, obj):
            obj.user.set_password(form.cleaned_data["new_password"])
            obj.user.save(update_fields=["password"])
        save_agent(obj)

    @display(description=_("Log-in name"))
    def login(self, agent: Agent) -> str:
        return agent.user.get_username()

    @display(description=_("Role"), label={Agent.Role.ADMIN: "info", Agent.Role.AGENT: ""})
    def role_label(self, agent: Agent) -> tuple[str, str]:
        return agent.role, agent.get_role_display()

    @display(description=_("Teams"))
    def in_teams(self, agent: Agent) -> str:
        return ", ".join(team.name for team in agent.teams.all()) or "–"

    @admin.action(description=_("Deactivate: may no longer log in or answer"))
    def deactivate(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        self._set_active(request, agents.exclude(pk=_own_agent(request)), active=False)

    @admin.action(description=_("Activate"))
    def activate(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        self._set_active(request, agents, active=True)

    def _set_active(self, request: HttpRequest, agents: QuerySet[Agent], *, active: bool) -> None:
        with transaction.atomic():
            for agent in agents.select_related("user"):
                agent.active = active
                save_agent(agent)
                self.log_change(request, agent, gettext("Activated.") if active else gettext("Deactivated."))
        messages.success(request, gettext("Done."))


def _own_agent(request: HttpRequest) -> str:
    own = agent_for_user(request.user.pk)
    return own.id if own else ""


def _may_reset(request: HttpRequest, agent: Agent) -> bool:
    """A workspace's admin never becomes a superuser by setting a superuser's password."""
    return is_superuser(request) or not agent.user.is_superuser


@admin.register(User)
class LoginAdmin(UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # unfold has no types
    """Users, for superusers alone: nobody else is given Django's model permissions."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Permissions"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (_("Important dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ()
