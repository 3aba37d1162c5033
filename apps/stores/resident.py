"""What a web process keeps of each site in memory: loaded whole, swapped whole, never the only copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

T = TypeVar("T")


class Resident(ABC, Generic[T]):
    """One value a site, with the version it was loaded for. A resident is owned by its process."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[int, T]] = {}

    @abstractmethod
    def load(self, site_id: str) -> T:
        """Reads the site's value. Blocks."""

    def refresh(self, site_id: str, version: int) -> None:
        """Loads and swaps. Blocks. An older version never replaces a newer one. Raises what `load` raises."""
        value = self.load(site_id)
        if version >= self.loaded_version(site_id):
            self._loaded[site_id] = (version, value)

    def loaded(self, site_id: str) -> T | None:
        """The newest value; None if none is loaded. Never blocks."""
        found = self._loaded.get(site_id)
        return found[1] if found is not None else None

    def loaded_version(self, site_id: str) -> int:
        """The version of the loaded value, 0 if there is none."""
        found = self._loaded.get(site_id)
        return found[0] if found is not None else 0

    def forget(self, site_id: str) -> None:
        """Frees what is held of the site."""
        self._loaded.pop(site_id, None)
