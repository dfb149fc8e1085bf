"""One request of a known caller to a known endpoint, and what is to be remembered of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from gateway.chat.chunks import Usage
from gateway.chat.dialects import CONTRACT, Dialect
from gateway.chat.requests import ModelRequest
from gateway.chat.upstreams.base import Job
from gateway.configuration.shapes import ModelEntry, Target
from gateway.identity import Caller

CLIENT_GONE = 499


@dataclass(slots=True)
class Exchange:
    """Filled in as it goes on; times in seconds from its start.

    `status` is what the client was told, 499 if it went away first. A stream that fails
    after it began was told 200 and has `error_status`.
    """

    caller: Caller
    endpoint: ModelEntry
    request: ModelRequest
    request_id: str
    dialect: Dialect = CONTRACT
    started: float = field(default_factory=time.perf_counter)
    target: Target | None = None
    status: int = 0
    error_status: int = 0
    usage: Usage | None = None
    first_chunk_s: float | None = None
    duration_s: float = 0.0

    def job(self, target: Target) -> Job:
        return Job(
            self.request,
            target,
            self.endpoint.timeouts,
            self.request_id,
            ask_usage=self.endpoint.stream_usage,
        )

    def elapsed(self) -> float:
        return time.perf_counter() - self.started
