"""The parts of a configuration that concern the content of requests: what is kept, what rules say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from django.utils.module_loading import import_string
from pydantic import AfterValidator, Field, StrictBool

from gateway.chat.policies import finders
from gateway.configuration.rules import (
    NOT_NULL,
    FromFile,
    Name,
    OneOf,
    Text,
    accepted_by,
)


@dataclass(frozen=True, slots=True)
class RequestLogSettings(FromFile):
    """The keys under `request_log`: whose prompts and answers are stored, and for how long.

    A request is stored if its model or its tenant is named: either match is enough. Of a prompt
    and of an answer so many characters are kept.
    """

    models: frozenset[Text] = frozenset()
    tenants: frozenset[Name] = frozenset()
    max_characters: Annotated[int, Field(strict=True, ge=1_000, le=1_000_000)] = 50_000
    retention_days: Annotated[int, Field(strict=True, ge=1, le=3650)] = 30

    def wants(self, *, model: str, tenant: str) -> bool:
        """Return True if a request is stored."""
        return model in self.models or tenant in self.tenants


# What a rule does, and with what.
ACTIONS = DENY, MASK = ("deny", "mask")
PLACES = REQUEST, ANSWER, BOTH = ("request", "answer", "both")
KINDS = ("regex", "words", "max_size", "tools", "pattern", "python")
# Kinds that can only deny: they are about no text.
WITHOUT_TEXT = ("max_size", "tools")


def _check_callable(path: str) -> None:
    try:
        is_callable = callable(import_string(path))
    except ImportError as error:
        raise ValueError(f"cannot be imported: {error}") from error
    if not is_callable:
        raise ValueError("is nothing that can be called")


def _complete(policy: PolicyEntry) -> PolicyEntry:
    given = [kind for kind in KINDS if getattr(policy, kind) not in ("", (), 0, None)]
    if policy.tools == ():
        given.append("tools")  # no tool is allowed
    if len(given) != 1:
        raise ValueError(f"needs exactly one of {', '.join(KINDS)}")
    (kind,) = given
    if kind in WITHOUT_TEXT and policy.action != DENY:
        raise ValueError(f"has {kind}, which can only deny")
    if kind == "tools" and policy.on != REQUEST:
        raise ValueError("has tools, which are of requests only")
    return policy


@dataclass(frozen=True, slots=True)
class PolicyEntry(FromFile):
    """An entry of `policies`: a rule about requests, answers or both, with exactly one kind.

    `regex` is a pattern of RE2, `words` are whole words and phrases, `max_size` is a number of
    bytes, `tools` are the names that a request may offer, `pattern` is one of the known ones,
    and `python` names a function that returns the spans of a text. Without `models` and
    `tenants` the rule applies to every request. `pass_through` lets it mask what passes to an
    upstream of Anthropic's kind as it is.
    """

    name: Annotated[
        str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
    ]
    action: Annotated[str, OneOf(ACTIONS)]
    on: Annotated[str, OneOf(PLACES)] = REQUEST
    regex: Annotated[Text, Field(max_length=1000), accepted_by(finders.regex)] = ""
    words: Annotated[
        tuple[Text, ...], Field(max_length=10_000), accepted_by(finders.words)
    ] = ()
    max_size: Annotated[int, Field(strict=True, ge=1)] = 0
    tools: Annotated[tuple[Text, ...] | None, NOT_NULL] = None
    pattern: Annotated[str, OneOf(finders.PATTERNS)] = ""
    python: Annotated[Text, accepted_by(_check_callable)] = ""
    models: frozenset[Text] = frozenset()
    tenants: frozenset[Name] = frozenset()
    pass_through: StrictBool = False


Policy = Annotated[PolicyEntry, AfterValidator(_complete)]
