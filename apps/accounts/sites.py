"""Sites by their public id, and what changes in one without a form."""

from __future__ import annotations

import hashlib

from django.db import transaction

from apps.accounts.models import Site, bump
from apps.stores.ids import is_id, new_secret


def find_site(site_id: str) -> Site | None:
    """The site of a snippet's id, whatever a stranger has sent as one. One query, none for what is no id."""
    return Site.objects.filter(pk=site_id).first() if is_id(site_id) else None


def secret_print(secret: str) -> str:
    """Tells one identity secret from another, and nothing of either."""
    return hashlib.sha256(secret.encode()).hexdigest()[:32]


def rotate_identity_secret(site: Site) -> str:
    """The new secret, which the site's server must sign with from now on: tokens of the old one end at once."""
    secret = new_secret()
    with transaction.atomic():
        Site.objects.filter(pk=site.pk).update(identity_secret=secret)
        bump(site, "settings_version")
    return secret
