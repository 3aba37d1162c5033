"""What makes an endpoint what it is, as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from apps.llm.providers.dialects import quirks_of
from apps.llm.providers.quirks import Quirks


class Api(StrEnum):
    """What a server is asked in, and over what."""

    CHAT_COMPLETIONS = "chat_completions"
    RESPONSES = "responses"
    RESPONSES_SOCKET = "responses_socket"


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """Everything that makes an endpoint what it is: two equal ones share connections, an edited one gets new ones."""

    name: str
    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    id: str = ""  # of the row that keeps its health
    api: Api = Api.CHAT_COMPLETIONS
    dialect: str = "auto"
    http2: bool = False
    max_concurrent: int = 100
    max_output_tokens: int = 700
    extra_body: str = "{}"  # JSON text, so that a spec can be a key
    # What only the choice among endpoints looks at: another value needs no other connections.
    priority: int = field(default=10, compare=False)
    region: str = field(default="", compare=False)
    # Of the Responses API.
    continue_chains: bool = True  # send only what is new, where the server still knows the rest
    keep_responses: bool = False  # let the server store responses, so that they can be continued over HTTP
    prepare_prompts: bool = False  # have the server read the prompt before the question, over a socket

    @property
    def quirks(self) -> Quirks:
        return quirks_of(self.dialect, self.base_url)

    def url(self, path: str) -> str:
        """The address of `path` below the base, which people also give with the path already in it."""
        base = self.base_url.rstrip("/").removesuffix("/chat/completions").removesuffix("/responses")
        return f"{base}/{path}"
