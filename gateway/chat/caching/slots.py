"""Which requests the cache may answer, and under which key an answer is kept. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from gateway.chat.core import json_numbers
from gateway.chat.core.context import ChatContext
from gateway.chat.operations.base import Operation
from gateway.chat.policies.checks import Checks
from gateway.configuration.shapes import CacheSettings, ModelEntry

HEADER = "x-signpost-cache"  # of a request
USE, SKIP = "use", "skip"
RESULT = "X-Cache"  # of a response
# A change of what is kept must change the keys.
VERSION = 1
# Fields that change no answer: who asks, and how the vendor caches and bills.
NOT_OF_ANSWER = frozenset(
    {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
)
# Fields that make an answer depend on what the upstream remembers.
STATEFUL = frozenset(
    {"previous_response_id", "conversation", "background", "prompt", "container"}
)


@dataclass(slots=True)
class Slot:
    """The place of one request's answer; `body` is the answer if there is one."""

    key: str
    tenant: str
    model: str
    settings: CacheSettings
    body: bytes | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {RESULT: "miss" if self.body is None else "hit"}


def slot_of(context: ChatContext, operation: Operation) -> Slot | None:
    """Return the slot of a request; None for one that the cache must not answer."""
    settings = context.endpoint.cache
    if settings is None or not _may_answer(context, operation):
        return None
    key = _key(context, operation)
    if key is None:
        return None
    return Slot(key, context.caller.tenant, context.endpoint.name, settings)


def _may_answer(context: ChatContext, operation: Operation) -> bool:
    """Return True for a request that asks for the cache, or has the same answer each time."""
    body, wish = context.request.body, context.cache_wish
    if not operation.is_budgeted or wish == SKIP:
        return False
    if any(body.get(name) for name in STATEFUL):
        return False
    if wish == USE or operation.inference_type == "embedding":
        return True
    temperature = body.get("temperature")
    return isinstance(temperature, int | float) and temperature == 0


def _key(context: ChatContext, operation: Operation) -> str | None:
    """Return the hash of all that changes an answer; None for what cannot be written again."""
    request = context.request
    body = {n: v for n, v in request.body.items() if n not in NOT_OF_ANSWER}
    parts: list[Any] = [
        *(VERSION, context.caller.tenant, operation.action),
        *(type(context.api_format).__name__, context.api_format.is_openai),
        *(request.stream, context.passed_query, dict(context.passed_headers)),
        *(_described(context.endpoint), _rules(context), body),
    ]
    try:
        return sha256(json_numbers.dumps(parts, sort_keys=True)).hexdigest()
    except TypeError:
        return None


def _rules(context: ChatContext) -> list[str]:
    """Return the rules about content, which may have masked a kept answer."""
    checks: Checks | None = context.checks
    return [rule.digest for rule in checks.rules] if checks is not None else []


def _described(entry: ModelEntry) -> list[Any]:
    """Return what of an entry changes an answer, so that a new configuration begins anew."""
    targets = sorted((target.base_url, target.model) for target in entry.targets)
    dropped = entry.drop_params
    return [
        *(entry.name, entry.upstream, entry.server, entry.api_version, entry.thinking),
        *(entry.responses, entry.strict_end, targets),
        entry.supports if entry.supports is None else sorted(entry.supports),
        *(dropped if isinstance(dropped, bool) else sorted(dropped),),
        *(dict(entry.extra_headers), dict(entry.extra_body)),
    ]
