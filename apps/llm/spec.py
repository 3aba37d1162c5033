"""What makes an endpoint what it is, as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.llm.providers.dialects import quirks_of
from apps.llm.providers.quirks import Quirks


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """Everything that makes an endpoint what it is: two equal ones share connections, an edited one gets new ones."""

    name: str
    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    id: str = ""  # the row's; empty for the endpoint of the settings
    dialect: str = "auto"
    http2: bool = False
    max_concurrent: int = 100
    max_output_tokens: int = 700
    extra_body: str = "{}"  # JSON text, so that a spec can be a key

    @property
    def quirks(self) -> Quirks:
        return quirks_of(self.dialect, self.base_url)

    def url(self, path: str) -> str:
        """The address of `path` below the base, which people also give with the path already in it."""
        return f"{self.base_url.rstrip('/').removesuffix('/chat/completions')}/{path}"
