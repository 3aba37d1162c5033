"""A site's settings, resident in each web process and replaced whole when its version moves."""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.models import Site, Team
from apps.accounts.sites import secret_print
from apps.stores.resident import Resident


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What turns and sockets need of a site and its workspace."""

    id: str
    workspace: str
    name: str
    assistant_name: str
    assistant_enabled: bool
    instructions: str
    answer_cache: str
    capped: bool
    prefetch: bool
    reads_drafts: bool
    speculation_tokens: int  # a minute; 0: off
    hours: tuple[str, ...]
    timezone: str
    teams: tuple[tuple[str, int], ...]  # (name, id)
    secret_print: str  # of the secret that signs known customers
    allowed_origins: tuple[str, ...]  # of pages that may speak the protocol themselves

    def team_id(self, name: str) -> int | None:
        """The team of that name, whatever its case; None where there is none."""
        return next((pk for team, pk in self.teams if team.casefold() == name.casefold()), None)


class SiteResident(Resident[SiteSettings]):
    """The current settings of every site."""

    def load(self, site_id: str) -> SiteSettings:
        """Two queries. Raises `Site.DoesNotExist`."""
        site = Site.objects.select_related("workspace").get(pk=site_id)
        teams = Team.objects.filter(workspace_id=site.workspace_id).values_list("name", "pk")
        return SiteSettings(
            id=site.pk,
            workspace=site.workspace_id,
            name=site.name,
            assistant_name=site.assistant_name,
            assistant_enabled=site.assistant_enabled,
            instructions=site.instructions,
            answer_cache=site.answer_cache,
            capped=site.daily_spend_cap is not None,
            prefetch=site.prefetch,
            reads_drafts=site.reads_drafts,
            speculation_tokens=site.speculation_tokens,
            hours=tuple(site.workspace.hours),
            timezone=site.workspace.timezone,
            teams=tuple(teams),
            secret_print=secret_print(site.identity_secret),
            allowed_origins=tuple(site.allowed_origins),
        )

    def current(self, site_id: str) -> SiteSettings | None:
        """None for a site that is not loaded (yet, or any more)."""
        return self.loaded(site_id)
