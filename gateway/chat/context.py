"""The facts of one request, and its outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gateway.chat.apis.base import Format, Operation
from gateway.chat.apis.deltas import Delta, Tokens, length_of
from gateway.chat.apis.openai.format import CONTRACT
from gateway.chat.request import ModelRequest
from gateway.chat.tokens import Usage, estimate, prompt_length
from gateway.configuration.shapes import Allow, ModelEntry, Target
from gateway.identity import Caller, is_name

if TYPE_CHECKING:
    from gateway.chat.http_messages import ChatRequest

CLIENT_GONE = 499
SUCCESS = 200
NO_TARGET = Target()  # before any is called
# In place of an endpoint that does not exist, or is not called: it admits no caller.
ABSENT = ModelEntry("", "openai", (), allow=Allow(everyone=False))
# The header by which Claude Code tells its sessions apart.
SESSION = "x-claude-code-session-id"


@dataclass(slots=True)
class ChatContext:
    """Filled in while the request runs; times in seconds from its start.

    `status` is the response's, 499 if the client left before. A stream that fails after
    it began has status 200 and an `error_status`. `ending` says what its end lacked.
    """

    caller: Caller
    endpoint: ModelEntry
    request: ModelRequest
    request_id: str
    operation: Operation
    api_format: Format = CONTRACT
    started: float = field(default_factory=time.perf_counter)
    target: Target = NO_TARGET
    runs_as: str = ""  # whose it counts as while it runs
    status: int = 0
    error_status: int = 0
    ending: str = ""
    usage: Usage | None = None
    prompt_characters: int = 0
    completion_characters: int = 0
    first_chunk_s: float | None = None
    is_estimated: bool = False  # in part, its usage or its cost
    duration_s: float = 0.0
    ended_at: datetime = field(init=False)
    # What an upstream gets of the client's headers and query, and what the client gets of its
    # headers.
    passed_headers: Mapping[str, str] = field(default_factory=dict)
    passed_query: str = ""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    # The other endpoints that may answer in place of the requested one, in their order.
    fallbacks: tuple[ModelEntry, ...] = ()
    called_at_s: float = 0.0  # when the calls of `endpoint` began
    # What its budgets hold for it until it ends; its cost in billionths if they assumed a price.
    reservation: Any = None
    assumed_cost: int | None = None
    # What its client got of a failure, and what the request log keeps of it if it is stored.
    failure: str = ""
    log: Any = None
    traceparent: str | None = None
    session: str = ""  # as Claude Code names it

    @classmethod
    def of(
        cls,
        request: ChatRequest,
        caller: Caller,
        wanted: ModelRequest,
        operation: Operation,
        api_format: Format,
    ) -> ChatContext:
        """Return the context of a request whose endpoint is not known yet."""
        headers = request.headers
        context = cls(caller, ABSENT, wanted, request.request_id, operation, api_format)
        context.traceparent = headers.get("traceparent")
        session = headers.get(SESSION, "")
        context.session = session if session and is_name(session) else ""
        if prefix := operation.passed_headers:
            context.passed_query = request.query
            context.passed_headers = {
                name: value
                for name, value in headers.items()
                if name.startswith(prefix)
            }
        return context

    @property
    def is_contract(self) -> bool:
        """True if the client gets the chunks and errors of the contract."""
        return self.api_format is CONTRACT

    def note(self, delta: Delta) -> None:
        """Count a delta of the answer, and log it. A usage of nothing counts as none."""
        if not isinstance(delta, Tokens):
            self.completion_characters += length_of(delta)
        elif delta.usage.prompt_tokens or delta.usage.completion_tokens:
            self.usage = delta.usage.at_least(self.usage)
        if self.log is not None:
            self.log.answer.add(delta)

    def estimated_prompt(self) -> int:
        """Return about how many tokens the prompt has."""
        if not self.prompt_characters:
            self.prompt_characters = prompt_length(self.request.body)
        return estimate(self.prompt_characters)

    def begin_call(self, target: Target) -> None:
        """Call a target; what an earlier one reported counts for nothing."""
        self.target, self.usage = target, None
        self.completion_characters = 0
        if self.log is not None:
            self.log.begin_answer()

    def forget_body(self) -> None:
        """Release the request's body, which may be large; the length of its text stays."""
        self.estimated_prompt()
        self.request = self.request.without_body()

    def reported(self) -> Usage:
        """Return what the upstream reports of its use; what it does not is estimated."""
        usage = self.usage or Usage(self.estimated_prompt(), None)
        if usage.completion_tokens is not None:
            return usage
        return usage.with_completion(estimate(self.completion_characters))

    def end(self, status: int) -> None:
        """Note how the request ended. Its record needs no body.

        Tokens are estimated once the upstream answered, and for requests whose client left: both
        used some.
        """
        self.status, self.duration_s = status, self.elapsed()
        self.ended_at = datetime.now(UTC)
        has_begun = status in (SUCCESS, CLIENT_GONE) or self.first_chunk_s is not None
        is_called = self.target is not NO_TARGET and self.operation.is_budgeted
        if is_called and has_begun:
            reported, self.usage = self.usage, self.reported()
            self.is_estimated = self.usage is not reported
        self.request = self.request.without_body()

    @property
    def outcome(self) -> int:
        """The status that counts: the error's if a stream failed after it began."""
        return self.error_status or self.status

    def elapsed(self) -> float:
        return time.perf_counter() - self.started
