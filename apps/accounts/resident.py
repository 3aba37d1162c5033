"""A site's settings, resident in each web process and replaced whole when its version moves."""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.models import Site, Team


@dataclass(frozen=True, slots=True)
class SiteSettings:
    id: str
    workspace: str
    name: str
    assistant_name: str
    assistant_enabled: bool
    instructions: str
    capped: bool
    hours: tuple[str, ...]
    timezone: str
    teams: tuple[tuple[str, int], ...]  # (name, id)
    version: int

    def team_id(self, name: str) -> int | None:
        """The team of that name, whatever its case; None where there is none."""
        return next((pk for team, pk in self.teams if team.casefold() == name.casefold()), None)


class SiteResident:
    """Current settings by site."""

    def __init__(self) -> None:
        self._sites: dict[str, SiteSettings] = {}

    def refresh(self, site_id: str, version: int) -> None:
        """Loads the site anew. Two queries. Raises `Site.DoesNotExist`."""
        site = Site.objects.select_related("workspace").get(pk=site_id)
        teams = Team.objects.filter(workspace_id=site.workspace_id).values_list("name", "pk")
        self._sites[site_id] = SiteSettings(
            id=site.pk,
            workspace=site.workspace_id,
            name=site.name,
            assistant_name=site.assistant_name,
            assistant_enabled=site.assistant_enabled,
            instructions=site.instructions,
            capped=site.daily_spend_cap is not None,
            hours=tuple(site.workspace.hours),
            timezone=site.workspace.timezone,
            teams=tuple(teams),
            version=max(version, site.settings_version),
        )

    def current(self, site_id: str) -> SiteSettings | None:
        return self._sites.get(site_id)

    def loaded_version(self, site_id: str) -> int:
        found = self._sites.get(site_id)
        return found.version if found is not None else 0

    def forget(self, site_id: str) -> None:
        self._sites.pop(site_id, None)
