"""What the database says of endpoints, and what is noted there about them. Synchronous ORM."""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.accounts.models import Site
from apps.llm.models import ModelEndpoint, SettingsEndpoint
from apps.llm.spec import Api, EndpointSpec

# No row of the admin has such an id.
SETTINGS_ID: Final = "env-"


def spec_of(row: ModelEndpoint) -> EndpointSpec:
    """The specification of a saved or unsaved row. No query."""
    return EndpointSpec(
        id=row.pk, name=row.name, base_url=row.base_url, api_key=row.api_key, model=row.model, dialect=row.dialect,
        api=Api(row.provider), http2=row.http2, max_concurrent=row.max_concurrent,
        max_output_tokens=row.max_output_tokens, extra_body=json.dumps(row.extra_body, sort_keys=True),
        continue_chains=row.continue_chains, keep_responses=row.keep_responses, prepare_prompts=row.prepare_prompts,
        priority=row.priority, region=row.region,
    )  # fmt: skip


def default_specs() -> tuple[EndpointSpec, ...]:
    """The endpoint of `LLM_BASE_URL`, `LLM_API_KEY` and `LLM_MODEL`, if they are set."""
    environment = settings.ENVIRONMENT
    if not environment.llm_base_url:
        return ()
    told = (environment.llm_base_url, environment.llm_api_key, environment.llm_model)
    return (
        EndpointSpec(
            id=_settings_id(*told), name="default", base_url=told[0], api_key=told[1], model=told[2],
        ),
    )  # fmt: skip


def _settings_id(*told: str) -> str:
    """Of these settings alone: what a refused key left behind is not said of its successor. Tells no key."""
    digest = salted_hmac("endpoint of the settings", "\0".join(told), algorithm="sha256").hexdigest()
    return f"{SETTINGS_ID}{digest[:12]}"


def ailing_default(sites: QuerySet[Site]) -> SettingsEndpoint | None:
    """The endpoint of the settings where `needs_admin` holds of it and one of `sites` uses it. Two queries at most."""
    for spec in default_specs():
        health = SettingsEndpoint.objects.filter(pk=spec.id).first()
        if health and health.needs_admin and sites.filter(model_endpoints=None).exists():
            return health
    return None


def specs_of_site(site_id: str) -> tuple[EndpointSpec, ...]:
    """The site's own enabled endpoints by priority, else the default. One query.

    A site that has endpoints of its own never falls back to the default: it chose who may read its customers' words.
    """
    rows = ModelEndpoint.objects.filter(site_id=site_id).order_by("priority", "id")
    return tuple(spec_of(row) for row in rows if row.enabled) if rows else default_specs()


def existing_sites(site_ids: set[str]) -> set[str]:
    """Those that were not deleted meanwhile. One query."""
    return set(Site.objects.filter(pk__in=site_ids).values_list("pk", flat=True))


def note_failure(endpoint_id: str, kind: str) -> None:
    """Keeps the endpoint's last failure for the admin. One query, a few more for the settings'; bumps no version."""
    _note(endpoint_id, {"last_error_kind": kind, "last_error_at": timezone.now()})


def note_success(endpoint_id: str) -> None:
    """Keeps when the endpoint last answered. One query, a few more for the settings'; bumps no version."""
    _note(endpoint_id, {"last_ok_at": timezone.now()})


def _note(endpoint_id: str, heard: dict[str, Any]) -> None:
    if endpoint_id.startswith(SETTINGS_ID):
        SettingsEndpoint.objects.update_or_create(pk=endpoint_id, defaults=heard)
    else:
        ModelEndpoint.objects.filter(pk=endpoint_id).update(**heard)
