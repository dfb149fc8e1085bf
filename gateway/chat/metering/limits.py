"""How many requests of one caller run at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gateway.chat.context import ChatContext
from gateway.identity import Caller
from webhooks_core.errors import TooManyRequestsError

RETRY_S = 1


@dataclass(slots=True)
class Limits:
    """The limit of one key (or one principal, without a key) in this process; 0 is no limit."""

    at_once: int = 0
    _running: Counter[str] = field(default_factory=Counter)

    def enter(self, context: ChatContext) -> None:
        """Count a request that runs. Raises TooManyRequestsError."""
        key = _key(context.caller)
        if self.at_once and self._running[key] >= self.at_once:
            raise TooManyRequestsError(
                f"At most {self.at_once} requests at once.",
                headers={"Retry-After": str(RETRY_S)},
            )
        self._running[key] += 1
        context.runs_as = key

    def leave(self, context: ChatContext) -> None:
        """Count a request no longer, if it is counted."""
        if not (key := context.runs_as):
            return
        context.runs_as = ""
        self._running[key] -= 1
        if self._running[key] <= 0:
            del self._running[key]

    @property
    def running(self) -> int:
        """How many requests run now."""
        return self._running.total()


def _key(caller: Caller) -> str:
    if caller.key_id is not None:
        return f"key:{caller.key_id}"
    return f"{caller.tenant}/{caller.principal}"
