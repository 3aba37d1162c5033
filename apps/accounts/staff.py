"""The admin's base: superusers see everything, an admin agent their own workspace, everybody else nothing.

Django's model permissions are not asked: a page that does not inherit from here stays with superusers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib.admin import RelatedFieldListFilter
from django.contrib.admin.utils import NotRelationField, get_fields_from_path
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget

from apps.accounts.agents import admin_workspace
from apps.accounts.models import Site
from apps.stores.sealed import SealedText


def staff_workspace(request: HttpRequest) -> str | None:
    """The workspace the asking admin agent is bound to; None for superusers and for strangers. Asked once."""
    if not hasattr(request, "_staff_workspace"):
        request._staff_workspace = admin_workspace(request.user.pk)  # type: ignore[attr-defined]
    found: str | None = request._staff_workspace  # type: ignore[attr-defined]
    return found


def is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def is_staff(request: HttpRequest) -> bool:
    return is_superuser(request) or staff_workspace(request) is not None


class ScopedRelatedFilter(RelatedFieldListFilter):
    """A filter by a related row that names only rows the asker may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        visible = scoped_rows(model_admin.admin_site, field.remote_field.model, request)
        return [(str(row.pk), str(row)) for row in visible]


class ScopedAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """A page over rows of workspaces. `workspace_path` leads from a row to its workspace's id."""

    workspace_path: ClassVar[str | None] = None  # None: superusers only
    may_add: ClassVar[bool] = True
    may_change: ClassVar[bool] = True
    may_delete: ClassVar[bool] = True

    list_filter_sheet = False
    compressed_fields = True
    warn_unsaved_form = True
    formfield_overrides: ClassVar[dict[Any, Any]] = {models.URLField: {"assume_scheme": "https"}}

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows: models.QuerySet[Any] = super().get_queryset(request)
        if is_superuser(request):
            return rows
        workspace = staff_workspace(request)
        if workspace is None or self.workspace_path is None:
            return rows.none()
        return rows.filter(**{self.workspace_path: workspace})

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request)

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        return self.may_add and self._may(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_change and self._may(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_delete and self._may(request)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [self._scoped_filter(given) for given in super().get_list_filter(request)]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A choice of related rows that the asker may see; the only one is chosen already."""
        if "queryset" not in kwargs:
            rows = scoped_rows(self.admin_site, db_field.remote_field.model, request)
            kwargs["queryset"] = rows
            if not db_field.null and not is_superuser(request):
                kwargs.setdefault("initial", rows.first() if rows.count() == 1 else None)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("queryset", scoped_rows(self.admin_site, db_field.remote_field.model, request))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Without an explicit list: all fields but sealed ones where the page can only be read."""
        fields = list(super().get_fields(request, obj))
        if obj is None or self.has_change_permission(request, obj):
            return fields
        return [name for name in fields if not self._sealed(name)]

    def page_beside(
        self, request: HttpRequest, template: str, *, title: str, **context: Any
    ) -> TemplateResponse:
        """A page of the admin that is neither the list nor a form of one row."""
        frame = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        return TemplateResponse(request, template, frame | context)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        # Django redirects with a friendly message; a forged id deserves the same answer as any wrong address.
        raise Http404

    def _may(self, request: HttpRequest) -> bool:
        return is_superuser(request) or (
            self.workspace_path is not None and staff_workspace(request) is not None
        )

    def _scoped_filter(self, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        try:
            field = get_fields_from_path(self.model, given)[-1]
        except (FieldDoesNotExist, NotRelationField):
            return given
        return (given, ScopedRelatedFilter) if field.is_relation else given

    def _sealed(self, name: Any) -> bool:
        try:
            return isinstance(self.model._meta.get_field(str(name)), SealedText)
        except FieldDoesNotExist:
            return False


class ReadOnlyAdmin(ScopedAdmin):
    """A page to look at."""

    may_add = False
    may_change = False
    may_delete = False
    actions = None


class SiteQuestionForm(forms.Form):
    """A question about a site, asked with GET: bound once `asked` is among the parameters."""

    asked: ClassVar[str]
    site = forms.ModelChoiceField(Site.objects.none(), label=_("Site"), widget=UnfoldAdminSelectWidget)

    def __init__(self, page: ScopedAdmin, request: HttpRequest) -> None:
        super().__init__(request.GET if self.asked in request.GET else None)
        site = self.fields["site"]
        assert isinstance(site, forms.ModelChoiceField)  # noqa: S101 - narrows for mypy
        site.queryset = scoped_rows(page.admin_site, Site, request)
        site.initial = site.queryset.first()


def scoped_rows(admin_site: Any, model: type[models.Model], request: HttpRequest) -> models.QuerySet[Any]:
    """The rows of another model as that model's own page would list them; none where it has no scoped page."""
    page = admin_site._registry.get(model)
    if isinstance(page, ScopedAdmin):
        return page.get_queryset(request)
    rows = model._default_manager.all()
    return rows if is_superuser(request) else rows.none()
