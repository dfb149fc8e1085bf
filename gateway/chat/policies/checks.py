"""The rules that apply to one request, and what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog

from gateway.chat.core import chunks, json_numbers
from gateway.chat.core.errors import ChatError, InvalidRequestError, InvalidValueError
from gateway.chat.core.model_request import ModelRequest, dump
from gateway.chat.core.tool_names import tool_names
from gateway.chat.core.usage_tokens import NO_TEXT_TYPES, NOT_TEXT
from gateway.chat.policies.finders import Span
from gateway.chat.policies.rules import Rule
from gateway.chat.request_log.shortened import Redact
from gateway.configuration.content import ANSWER, REQUEST

# Members that are no text, or that others refer to. LiteLLM's blocks of thinking repeat a text.
UNTOUCHED = (NOT_TEXT - {"thinking_blocks"}) | {
    *("model", "name", "call_id", "tool_use_id", "object", "status", "service_tier"),
    *("finish_reason", "native_finish_reason", "stop_reason", "system_fingerprint"),
    *("required", "$ref"),  # the names of a schema's members
}
# What a tool is called with, as an object: every member is a text, whatever its name.
DATA = frozenset({"input", "arguments"})
# The members of a schema by name, each a schema.
SCHEMAS = frozenset({"properties", "$defs", "definitions"})

log = structlog.stdlib.get_logger(__name__)


class PolicyDeniedError(InvalidValueError, InvalidRequestError):
    """A rule denies a request or an answer: 400 before a stream begins, and within it."""

    def __init__(self, what: str, rule: str) -> None:
        super().__init__(f"The {what} is denied by the policy {rule}.")


class RuleFailedError(ChatError):
    """Code of an operator failed: no upstream did."""


@dataclass(slots=True)
class Checks:
    """The rules of one request. `fired` and `denied_by` are names, never content."""

    rules: tuple[Rule, ...]
    action: str
    traceparent: str | None = None
    fired: list[str] = field(default_factory=list)
    denied_by: str = ""

    def request(self, request: ModelRequest) -> ModelRequest:
        """Return a request with what rules mask. Raises PolicyDeniedError.

        What passes to an upstream byte for byte is changed only by rules with `pass_through`.
        """
        rules = [rule for rule in self.rules if rule.is_on(REQUEST)]
        self.check_size(request.size, rules, REQUEST)
        for rule in rules:
            allowed = rule.entry.tools
            if allowed is not None and not {*tool_names(request.body)} <= {*allowed}:
                raise self._denied(rule, REQUEST)
        body = self.masked(request.body, rules, REQUEST)
        raw = request.raw
        if raw and body is not request.body:
            passing = [rule for rule in rules if rule.denies or rule.entry.pass_through]
            passed = self.masked(request.body, passing, REQUEST)
            raw = raw if passed is request.body else dump(passed)
        return replace(request, body=body, raw=raw)

    def answer(self, body: bytes, *, passes_through: bool) -> bytes:
        """Return a whole answer with what rules mask. Raises PolicyDeniedError."""
        rules = self.answer_rules(passes_through=passes_through)
        if not rules:
            return body
        self.check_size(len(body), rules, ANSWER)
        value = json_numbers.loads_any(body)
        masked = self.masked(value, rules, ANSWER)
        return body if masked is value else chunks.dump(masked)

    def answer_rules(self, *, passes_through: bool) -> list[Rule]:
        """Return the rules for an answer; what passes through is masked only where it is on."""
        return [
            rule
            for rule in self.rules
            if rule.is_on(ANSWER)
            and (rule.denies or not passes_through or rule.entry.pass_through)
        ]

    def spans(
        self, text: str, rules: Iterable[Rule], what: str
    ) -> list[tuple[int, int, Rule]]:
        """Return what rules mask in a text, none overlapping. Raises PolicyDeniedError."""
        spans: list[tuple[int, int, Rule]] = []
        for rule in rules:
            for start, end in found(rule, text):
                if rule.denies:
                    raise self._denied(rule, what)
                spans.append((start, end, rule))
        if len(spans) < 2:
            return spans
        apart, behind = [], 0
        for start, end, rule in sorted(spans, key=lambda span: span[:2]):
            if end > behind:
                apart.append((max(start, behind), end, rule))
                behind = end
        return apart

    def mark(self, rule: Rule) -> str:
        """Return what stands in place of a match, which has fired the rule."""
        self._note(rule)
        return f"[{rule.name}]"

    def text(self, text: str, rules: Iterable[Rule], what: str) -> str:
        """Return a text with what rules mask. Raises PolicyDeniedError."""
        for rule in rules:
            if rule.find is None or not (spans := found(rule, text)):
                continue
            if rule.denies:
                raise self._denied(rule, what)
            self._note(rule)
            text = with_marks(text, spans, rule.name)
        return text

    def redactors(self) -> tuple[Redact | None, Redact | None]:
        """Return what masks the texts of a prompt and of an answer for the log."""
        return self._redactor(REQUEST), self._redactor(ANSWER)

    def _redactor(self, what: str) -> Redact | None:
        """Return what masks a text for the log: all that a rule masks or denies."""
        rules = [rule for rule in self.rules if rule.is_on(what) and rule.find]
        if not rules:
            return None

        def redact(text: str) -> str:
            for rule in rules:
                if spans := found(rule, text):
                    text = with_marks(text, spans, rule.name)
            return text

        return redact

    def masked(self, value: Any, rules: Iterable[Rule], what: str) -> Any:
        """Return JSON with what rules mask; the same object if nothing is. Raises PolicyDeniedError."""
        text_rules = [rule for rule in rules if rule.find is not None]
        if not text_rules:
            return value
        try:
            return changed(value, lambda text: self.text(text, text_rules, what))
        except RecursionError as error:
            raise InvalidValueError("The body is nested too deeply.") from error

    def check_size(self, size: int, rules: Iterable[Rule], what: str) -> None:
        """Raise PolicyDeniedError for what is larger than a rule allows."""
        for rule in rules:
            if 0 < rule.entry.max_size < size:
                raise self._denied(rule, what)

    def _denied(self, rule: Rule, what: str) -> PolicyDeniedError:
        self._note(rule)
        self.denied_by = rule.name
        return PolicyDeniedError(what, rule.name)

    def _note(self, rule: Rule) -> None:
        if rule.name not in self.fired:
            self.fired.append(rule.name)


def found(rule: Rule, text: str) -> list[Span]:
    """Return the spans that a rule finds. Code of an operator may return them in any order.

    Raises RuleFailedError.
    """
    if rule.find is None:
        return []
    if not rule.entry.python:
        return [*rule.find(text)]
    try:
        return _joined(sorted(rule.find(text)), len(text))
    except Exception as error:
        log.exception("rule failed", rule=rule.name)
        raise RuleFailedError(f"the rule {rule.name} failed") from error


def _joined(spans: Iterable[Span], length: int) -> list[Span]:
    """Return spans within a text; those that overlap or touch become one."""
    joined: list[Span] = []
    for start, end in ((max(0, start), min(end, length)) for start, end in spans):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def with_marks(text: str, spans: Iterable[Span], name: str) -> str:
    """Return a text with the name of a rule in place of each span."""
    parts, behind = [], 0
    for start, end in spans:
        parts += [text[behind:start], f"[{name}]"]
        behind = end
    return "".join([*parts, text[behind:]])


def changed(value: Any, change: Callable[[str], str], *, is_data: bool = False) -> Any:
    """Return JSON whose texts have been changed; the same object if none was.

    Within data every member is a text, whatever its name.
    """
    match value:
        case str():
            return change(value)
        case list():
            items = [changed(item, change, is_data=is_data) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else items
        case dict() if is_data:
            return _changed_items(value, partial(changed, change=change, is_data=True))
        case dict() if value.get("type") not in NO_TEXT_TYPES:
            return _changed_members(value, change)
    return value


def _changed_members(
    value: Mapping[str, Any], change: Callable[[str], str]
) -> Mapping[str, Any]:
    new = {}
    for name, item in value.items():
        if name not in UNTOUCHED:
            result = _changed_member(name, item, change)
            if result is not item:
                new[name] = result
    if new and value.get("logprobs"):
        new["logprobs"] = None  # they repeat the text, token by token
    if new and value.get("signature"):
        new["signature"] = ""  # it covers exactly the text
    return {**value, **new} if new else value


def _changed_member(name: str, item: Any, change: Callable[[str], str]) -> Any:
    if not isinstance(item, dict) or name not in DATA | SCHEMAS:
        return changed(item, change)
    within = partial(changed, change=change, is_data=name in DATA)
    return _changed_items(item, within)


def _changed_items(values: dict[Any, Any], change: Callable[[Any], Any]) -> Any:
    new = {name: change(item) for name, item in values.items()}
    return values if all(new[name] is values[name] for name in values) else new
