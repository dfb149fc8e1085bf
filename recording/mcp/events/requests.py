"""The parameters of the methods of MCP Events."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recording.mcp import faults
from recording.mcp.events import catalog
from recording.mcp.events.arguments import Arguments
from recording.mcp.events.errors import InvalidParamsError
from recording.mcp.events.occurrences import Subject

Model = TypeVar("Model", bound=BaseModel)


class Params(BaseModel):
    """Parameters; those that this server does not know have no effect."""

    model_config = ConfigDict(strict=True, frozen=True)


class ListParams(Params):
    cursor: None = None  # all event types fit into one page


class SubjectParams(Params):
    name: Annotated[str, Field(max_length=128)]
    arguments: dict[str, Any] = {}

    def subject(self, account: int) -> Subject:
        """Raises NotFoundError or InvalidParamsError."""
        catalog.check_name(self.name)
        return Subject(account, self.name, Arguments.read(self.arguments))


class StreamParams(SubjectParams):
    cursor: str | None = None
    max_age_ms: Annotated[int | None, Field(ge=0, alias="maxAgeMs")] = None


class PollParams(StreamParams):
    max_events: Annotated[int | None, Field(ge=1, alias="maxEvents")] = None


class CallbackParams(Params):
    url: Annotated[str, Field(max_length=2048)]


class NewCallbackParams(CallbackParams):
    mode: str
    secret: Annotated[str, Field(max_length=256)] = ""


class SubscribeParams(StreamParams):
    delivery: NewCallbackParams
    ttl_ms: Annotated[int | None, Field(alias="ttlMs")] = None


class UnsubscribeParams(SubjectParams):
    delivery: CallbackParams


def read(model: type[Model], params: object) -> Model:
    """Return the parameters of a request. Raises InvalidParamsError."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise InvalidParamsError(faults.describe(error)) from error
