"""How the products describe their operations and outgoing events to drf-spectacular."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    OpenApiWebhook,
    extend_schema,
)

from webhooks_core.errors import ApiError
from webhooks_core.profiles import EventType
from webhooks_core.schemas import object_of, ref

Shape = dict[str, Any]
Answers = Mapping[int, tuple[Shape | None, Any]]


@dataclass(frozen=True)
class Describer:
    """Describes one product: `error` names its shape of errors, `common` those of every call."""

    prefix: str
    tag: str
    error: str
    common: Sequence[Callable[[], ApiError]]

    def operation(
        self,
        operation_id: str,
        description: str,
        *,
        answers: Answers,
        fails: Sequence[Callable[[], ApiError]] = (),
        request: Shape | None = None,
        request_example: Any = None,
        parameters: Sequence[OpenApiParameter] = (),
    ) -> Callable[[Any], Any]:
        """Describe an operation.

        `answers` holds shape and example of each success status, `request` a shape for each
        media type.
        """
        told = (kind() for kind in (*fails, *self.common))
        failures = {failure.status_code: self._failure(failure) for failure in told}
        example = OpenApiExample(
            "request",
            value=request_example,
            request_only=True,
            media_type="application/json",
        )
        return extend_schema(
            operation_id=f"{self.prefix}_{operation_id}",
            summary=description,
            tags=[self.tag],
            parameters=[*parameters],
            request=request,
            responses=_successes(answers, description) | dict(sorted(failures.items())),
            examples=[] if request is None else [example],
        )

    def _failure(self, told: ApiError) -> OpenApiResponse:
        name = type(told).__name__.removesuffix("Error")
        example = OpenApiExample(name, value=told.body, response_only=True)
        return OpenApiResponse(ref(self.error), told.detail, [example])

    def outgoing(
        self, event_type: EventType, *, envelope: Shape, example: Shape, promise: str
    ) -> OpenApiWebhook:
        """Describe what we send to subscribers; `envelope` and `example` are without type, data."""
        shape = object_of(
            **envelope
            | {"type": {"const": event_type.name}, "data": dict(event_type.schema)}
        )
        sample = example | {"type": event_type.name, "data": event_type.sample}
        return OpenApiWebhook(
            name=event_type.name,
            decorator=extend_schema(
                summary=event_type.description,
                description=promise,
                tags=[self.tag],
                request={"application/json": shape},
                responses={200: OpenApiResponse(description="Received.")},
                examples=[OpenApiExample("event", value=sample)],
            ),
        )


def _successes(answers: Answers, description: str) -> dict[int, OpenApiResponse]:
    def examples(shape: Shape | None, example: Any) -> list[OpenApiExample]:
        shown = OpenApiExample("answer", value=example, response_only=True)
        return [] if shape is None else [shown]

    return {
        status: OpenApiResponse(shape, description, examples(shape, example))
        for status, (shape, example) in answers.items()
    }


def count(
    name: str, *, default: int | None, maximum: int | None = None
) -> OpenApiParameter:
    """Describe a query parameter of at least 1."""
    schema: Shape = {"type": "integer", "minimum": 1}
    told = "" if maximum is None else f"Above {maximum}: {maximum}."
    return OpenApiParameter(
        name, schema | ({"default": default} if default else {}), description=told
    )


def adding(shapes: Mapping[str, Shape]) -> Callable[..., Shape]:
    """Return a drf-spectacular hook that puts shapes among the document's components."""

    def add(result: Shape, **_: Any) -> Shape:
        components = result["components"]
        there = components.get("schemas", {}) | shapes
        components["schemas"] = dict(sorted(there.items()))
        return result

    return add
