"""Reads of customers for other layers."""

from __future__ import annotations

from django.core.exceptions import ObjectDoesNotExist

from apps.customers.connectors import ShopAccount
from apps.customers.models import Customer, ProfileSource


def shop_account(customer_id: str) -> ShopAccount | None:
    """Where to ask for this customer; None for visitors and for sites without a source. One query."""
    customer = Customer.objects.select_related("site__profile_source").filter(pk=customer_id).first()
    if customer is None or not customer.verified:
        return None
    try:
        source = customer.site.profile_source
    except ObjectDoesNotExist:
        return None
    return ShopAccount(source.base_url, source.api_key, customer.external_id)


def profile_source_urls(limit: int) -> tuple[str, ...]:
    """The distinct base addresses of the shops, to warm at start. One query."""
    return tuple(
        ProfileSource.objects.order_by("base_url").values_list("base_url", flat=True).distinct()[:limit]
    )
