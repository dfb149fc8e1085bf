"""The operator's function that sees a request for a model before its call.

GATEWAY_CHAT_POLICY names a function, asynchronous or not, of the caller, the name of the model
and the body. It returns the body for the upstream, or raises PolicyDenied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from gateway.chat.errors import RefusedError
from gateway.chat.request import ModelRequest, dump
from gateway.identity import Caller

Policy = Callable[[Caller, ModelRequest], Awaitable[ModelRequest]]


class PolicyDenied(RefusedError):  # noqa: N818 - a name for operators
    """The request is denied: 400 with the reason, and `audit.policy_violation`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.denial = reason


def configured() -> Policy | None:
    """Return the policy of the settings, None if there is none. Raises ImportError."""
    path = settings.GATEWAY_CHAT_POLICY
    return policy_of(import_string(path)) if path else None


def policy_of(function: Callable[[Caller, str, dict[str, Any]], Any]) -> Policy:
    async def apply(caller: Caller, request: ModelRequest) -> ModelRequest:
        result = function(caller, request.model, {**request.body})
        body = await result if isawaitable(result) else result
        kept = {
            name: request.body[name]
            for name in ("model", "stream")
            if name in request.body
        }
        changed = {**body, **kept}
        return replace(request, body=changed, raw=dump(changed))

    return apply
