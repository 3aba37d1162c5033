"""Pages of customers and of the shops that know them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminURLInputWidget

from apps.accounts.fields import WriteOnlyField, WriteOnlyForm
from apps.accounts.staff import ReadOnlyAdmin, ScopedAdmin
from apps.customers.models import Customer, ProfileSource


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    workspace_path = "site__workspace_id"
    list_display = ("__str__", "verification", "email", "site", "locale", "created_at")
    list_filter = ("site", "locale", ("external_id", admin.EmptyFieldListFilter))
    list_select_related = ("site",)
    search_fields = ("name", "email", "external_id", "id")
    fields = ("id", "site", "external_id", "name", "email", "locale", "created_at")
    readonly_fields = fields
    ordering = ("-created_at",)

    @display(description=_("Identity"), label={"verified": "success", "visitor": ""})
    def verification(self, customer: Customer) -> tuple[str, str]:
        return ("verified", gettext("Verified")) if customer.verified else ("visitor", gettext("Visitor"))


class ProfileSourceForm(WriteOnlyForm):
    write_only = ("api_key",)
    sent_to = "base_url"
    base_url = forms.URLField(
        label=_("Address"), assume_scheme="https", widget=UnfoldAdminURLInputWidget(),
        help_text=_("Asked for /customers/{id} and /customers/{id}/orders below it."),
    )  # fmt: skip
    api_key = WriteOnlyField(label=_("API key"), help_text="")

    class Meta:
        model = ProfileSource
        fields = ("site", "base_url", "api_key")

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
            raise ValidationError(
                _("Write the address like https://shop.example/api, without user or query.")
            )
        return url.rstrip("/")


@admin.register(ProfileSource)
class ProfileSourceAdmin(ScopedAdmin):
    workspace_path = "site__workspace_id"
    form = ProfileSourceForm
    list_display = ("site", "base_url", "key_stored")
    list_select_related = ("site",)
    fields = ("site", "base_url", "api_key")

    @display(description=_("API key"), boolean=True)
    def key_stored(self, source: Any) -> bool:
        return bool(source.api_key)
