"""Customers of a site, and where their profile and orders come from."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Site
from apps.stores.ids import new_id
from apps.stores.sealed import SealedText


class Customer(models.Model):
    """A visitor (no `external_id`) or a person the site vouches for by a signed token."""

    id = models.CharField(primary_key=True, max_length=20, default=new_id, editable=False)
    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="customers")
    external_id = models.CharField(
        max_length=128, blank=True, help_text="The site's own id; empty for visitors."
    )
    name = models.CharField(max_length=120, blank=True)
    email = models.EmailField(blank=True)
    locale = models.CharField(max_length=16, default="en")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["site", "external_id"],
                condition=~Q(external_id=""),
                name="one_customer_an_external_id",
            )
        ]

    def __str__(self) -> str:
        return self.name or f"Visitor {self.pk[-4:]}"

    @property
    def verified(self) -> bool:
        return bool(self.external_id)


class ProfileSource(models.Model):
    """The shop's API: `GET {base_url}/customers/{external_id}` and `…/orders`, with a bearer key."""

    site = models.OneToOneField(Site, on_delete=models.CASCADE, related_name="profile_source")
    base_url = models.URLField()
    api_key = SealedText(blank=True)

    def __str__(self) -> str:
        return self.base_url
