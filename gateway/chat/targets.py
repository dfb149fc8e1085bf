"""Calls of an endpoint: its targets in turn until one succeeds, none after the first chunk.

Then the endpoints of `fallbacks`. A target that fails again and again is called last for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

import structlog

from gateway.chat.capabilities import require
from gateway.chat.context import ChatContext
from gateway.chat.errors import (
    ChatError,
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
    UpstreamServiceError,
)
from gateway.chat.upstreams.base import Upstream
from gateway.configuration.shapes import ModelEntry, Target
from webhooks_core.errors import TooManyRequestsError
from webhooks_core.network.deadlines import within

T = TypeVar("T")
# Makes a call to an upstream.
Method = Callable[[Upstream, ChatContext], Awaitable[T]]

ANSWERED_BY = "X-Signpost-Model"
# What a fallback raises that cannot take the request: it is passed over.
UNABLE = (
    UnsupportedRequestError,
    UnsupportedInferenceTypeError,
    TooManyRequestsError,
)
FAILURES_UNTIL_EJECTED = 3
FIRST_EJECTION_S = 5.0
LONGEST_EJECTION_S = 60.0
MAX_KNOWN = 10_000
NOT_FOUND = 404

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Health:
    """The recent failures of a target; times are of a monotonic clock."""

    failures: int = 0
    ejected_until: float = 0.0


@dataclass(slots=True)
class Router:
    """Orders targets: by weight among the healthy, then those that were ejected.

    After FAILURES_UNTIL_EJECTED failures in a row a target is ejected for a time that
    doubles with each further failure; one success makes it healthy again. The only target
    of an endpoint is always called.
    """

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    _health: dict[tuple[str, str, str], Health] = field(default_factory=dict)

    def order(self, endpoint: ModelEntry) -> list[Target]:
        """Return the targets in the order in which they are tried."""
        if len(endpoint.targets) == 1:
            return list(endpoint.targets)
        # Efraimidis and Spirakis: sorting by random ** (1 / weight) draws by weight.
        drawn = sorted(
            endpoint.targets,
            key=lambda target: self.chance() ** (1 / target.weight),
            reverse=True,
        )
        return sorted(drawn, key=lambda target: self.is_ejected(endpoint, target))

    def is_ejected(self, endpoint: ModelEntry, target: Target) -> bool:
        health = self._health.get(_key(endpoint, target))
        return health is not None and health.ejected_until > self.clock()

    def succeeded(self, endpoint: ModelEntry, target: Target) -> None:
        if self._health:
            self._health.pop(_key(endpoint, target), None)

    def failed(
        self, endpoint: ModelEntry, target: Target, *, retry_after: float | None = None
    ) -> None:
        """Note a failure; `retry_after` ejects the target at once for so many seconds."""
        if len(self._health) >= MAX_KNOWN:
            self._health.clear()
        health = self._health.setdefault(_key(endpoint, target), Health())
        health.failures += 1
        pause = min(retry_after or 0.0, LONGEST_EJECTION_S)
        doublings = health.failures - FAILURES_UNTIL_EJECTED
        if doublings >= 0:
            ejection_s = FIRST_EJECTION_S * 2 ** min(doublings, 8)
            pause = max(pause, min(ejection_s, LONGEST_EJECTION_S))
        health.ejected_until = max(health.ejected_until, self.clock() + pause)


def _key(endpoint: ModelEntry, target: Target) -> tuple[str, str, str]:
    return endpoint.name, target.base_url, target.model


@dataclass(frozen=True, slots=True)
class Targets:
    """Calls the upstream of an endpoint.

    `reserve` reserves anew for a fallback, which is the context's endpoint then. Raises
    TooManyRequestsError.
    """

    upstreams: Mapping[str, Upstream]
    router: Router
    reserve: Callable[[ChatContext], Awaitable[None]]

    async def call(self, context: ChatContext, call: Method[T]) -> T:
        """Return the result of the first endpoint that succeeds, which then is the context's.

        Raises as Upstream's methods do.
        """
        requested, failure = context.endpoint, None
        try:
            for entry in (requested, *context.fallbacks):
                if entry is requested or await self._is_able(context, entry):
                    try:
                        result = await self._call_entry(context, call)
                    except UpstreamServiceError as error:
                        failure = error
                    else:
                        _name_answerer(context, requested)
                        return result
            raise failure or UpstreamServiceError("there is no target")
        except BaseException:
            context.endpoint = requested
            raise

    async def _is_able(self, context: ChatContext, entry: ModelEntry) -> bool:
        """Make a fallback the endpoint; return False if it cannot take the request."""
        requested = context.endpoint
        try:
            require(entry, context.operation, context.request)
            context.endpoint = entry
            await self.reserve(context)
        except UNABLE:
            context.endpoint = requested
            return False
        log.warning(
            "fallback called", request_id=context.request_id, fallback=entry.name
        )
        return True

    async def _call_entry(self, context: ChatContext, call: Method[T]) -> T:
        """Return the result of the first target that succeeds, within the total time."""
        entry = context.endpoint
        upstream = self.upstreams[entry.upstream]
        failure: UpstreamServiceError | None = None
        context.called_at_s = context.elapsed() if context.fallbacks else 0.0
        try:
            with within(entry.timeouts.total_s):
                for target in self.router.order(entry):
                    context.begin_call(target)
                    try:
                        result = await call(upstream, context)
                    except TimeoutError:
                        failure = UpstreamServiceError("no answer in time")
                    except UpstreamServiceError as error:
                        failure = error
                    except ChatError:
                        raise  # the request is refused, wherever it goes
                    except Exception as error:
                        log.exception("target failed", request_id=context.request_id)
                        failure = UpstreamServiceError(type(error).__name__)
                    else:
                        self.router.succeeded(entry, target)
                        return result
                    self._note_failure(context, failure)
        except TimeoutError:
            failure = UpstreamServiceError("no answer within the total time")
            self._note_failure(context, failure)
        raise failure or UpstreamServiceError("there is no target")

    def _note_failure(
        self, context: ChatContext, failure: UpstreamServiceError
    ) -> None:
        entry, target = context.endpoint, context.target
        # A server may lack an operation that costs nothing, and still have the others.
        is_budgeted = context.operation.is_budgeted
        if is_budgeted or failure.upstream.status != NOT_FOUND:
            self.router.failed(entry, target, retry_after=failure.upstream.retry_after)
        log.warning(
            "upstream failed",
            request_id=context.request_id,
            model=entry.name,
            upstream_model=target.model,
            reason=str(failure),
        )


def _name_answerer(context: ChatContext, requested: ModelEntry) -> None:
    if requested.fallbacks:
        answered_by = {ANSWERED_BY: header_value(context.endpoint.name)}
        context.response_headers = {**context.response_headers, **answered_by}


def header_value(name: str) -> str:
    """Return the name of an endpoint as it can stand in a header."""
    return name if name.isascii() and name.isprintable() else quote(name)
