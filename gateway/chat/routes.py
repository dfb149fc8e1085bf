"""Chat's addresses: which operation each of them serves, in which format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.chat.apis.base import Format, Operation
from gateway.chat.apis.messages.format import MESSAGES, VERSION_HEADER
from gateway.chat.apis.messages.operation import COUNT_TOKENS
from gateway.chat.apis.messages.operation import MESSAGES as CREATE_MESSAGE
from gateway.chat.apis.openai.chat import CHAT, EMBEDDINGS
from gateway.chat.apis.openai.format import CONTRACT, OPENAI
from gateway.chat.apis.responses.format import RESPONSES
from gateway.chat.apis.responses.operation import RESPOND
from webhooks_core.errors import MethodNotAllowedError


@dataclass(frozen=True, slots=True)
class Route:
    """What is served at a path; without an operation, descriptions of models."""

    method: str
    api_format: Format
    operation: Operation | None = None

    def format_for(self, headers: Mapping[str, str]) -> Format:
        """Return the format of responses; models are described in the client's own."""
        is_models = self.operation is None and VERSION_HEADER in headers
        return MESSAGES if is_models else self.api_format

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    def check_method(self, method: str) -> None:
        """Raise MethodNotAllowedError for a method that the route does not serve."""
        if method not in self.methods:
            raise MethodNotAllowedError(headers={"Allow": ", ".join(self.methods)})


MODELS = Route("GET", OPENAI)
# What follows is the name of a model, which may hold anything.
MODEL_PREFIX = "/v1/models/"
CONTRACT_CHAT = Route("POST", CONTRACT, CHAT)
ROUTES: Mapping[str, Route] = {
    "/v2/chat/completions": CONTRACT_CHAT,
    # The specification's path within its router, and the name in its log.
    "/chat/completions": CONTRACT_CHAT,
    "/v2/chat/completion": CONTRACT_CHAT,
    "/v1/chat/completions": Route("POST", OPENAI, CHAT),
    "/v1/embeddings": Route("POST", OPENAI, EMBEDDINGS),
    "/v1/messages": Route("POST", MESSAGES, CREATE_MESSAGE),
    "/v1/messages/count_tokens": Route("POST", MESSAGES, COUNT_TOKENS),
    "/v1/responses": Route("POST", RESPONSES, RESPOND),
    "/v1/models": MODELS,
}


def serves(path: str) -> bool:
    """Return True if a path is one of chat's."""
    return path in ROUTES or path.startswith(MODEL_PREFIX)


def route_of(path: str) -> Route:
    """Return the route of a path; of one that is not served, the route that it is below."""
    known = path
    while known and known not in ROUTES:
        known = known.rpartition("/")[0]
    is_contract = path.startswith(("/v2/", "/chat/"))
    return ROUTES.get(known, CONTRACT_CHAT if is_contract else MODELS)
