"""Customers of a site, and where their profile and orders come from."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import Site
from apps.stores.ids import new_id
from apps.stores.sealed import SealedText


class Customer(models.Model):
    """A visitor (no `external_id`) or a person the site vouches for by a signed token."""

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    site = models.ForeignKey(Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="customers")
    external_id = models.CharField(
        _("the site's own id"), max_length=128, blank=True, help_text=_("Empty for visitors.")
    )
    name = models.CharField(_("name"), max_length=120, blank=True)
    email = models.EmailField(_("email"), blank=True)
    locale = models.CharField(_("language"), max_length=16, default="en")
    created_at = models.DateTimeField(_("since"), auto_now_add=True)

    class Meta:
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        constraints = [
            models.UniqueConstraint(
                fields=["site", "external_id"],
                condition=~Q(external_id=""),
                name="one_customer_an_external_id",
            )
        ]

    def __str__(self) -> str:
        return self.name or gettext("Visitor %s") % self.pk[-4:]

    @property
    def verified(self) -> bool:
        """The site vouches for this customer: only then are there facts."""
        return bool(self.external_id)


class ProfileSource(models.Model):
    """The shop's API: `GET {base_url}/customers/{external_id}` and `…/orders`, with a bearer key."""

    site = models.OneToOneField(
        Site, verbose_name=_("site"), on_delete=models.CASCADE, related_name="profile_source"
    )
    base_url = models.URLField(_("address"))
    api_key = SealedText(_("API key"), blank=True)

    class Meta:
        verbose_name = _("shop")
        verbose_name_plural = _("shops")

    def __str__(self) -> str:
        return self.base_url
