"""Fields of the configuration: no coercion, and one message for each fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError as InvalidValue
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import empty
from rest_framework.settings import api_settings

from gateway.configuration.yaml import AT_KEY
from gateway.identity import NAME_RULE, is_name

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
BARE_REFERENCE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
# Text that no database stores and no request can contain.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

OWN = api_settings.NON_FIELD_ERRORS_KEY
Field = serializers.Field[Any, Any, Any, Any]


def resolve(text: str, environ: Mapping[str, str]) -> str:
    """Return a secret, or the value of the variable that `${NAME}` refers to.

    Raises Django's ValidationError.
    """
    match = REFERENCE.fullmatch(text)
    if BARE_REFERENCE.fullmatch(text):
        # Not its name: a secret may look like one.
        raise InvalidValue("must be written ${NAME}, with braces, to name a variable")
    if match is None and "${" in text:
        raise InvalidValue("is neither a text nor a whole ${NAME}")
    if match is None:
        return text
    if not environ.get(match[1]):
        raise InvalidValue(f"the environment variable {match[1]} is not set")
    return environ[match[1]]


def as_key(text: str) -> str:
    """Return a key without the line break of the file that it comes from.

    Raises Django's ValidationError for what cannot stand in a header.
    """
    key = text.strip()
    if not (key and key.isascii() and key.isprintable()):
        raise InvalidValue("must be printable ASCII")
    return key


def is_base_url(url: str) -> bool:
    """Return True if this is an http or https address without query and fragment."""
    try:
        parts = urlsplit(url)
        is_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = url.isprintable() and " " not in url
    is_plain = is_plain and not (parts.query or parts.fragment)
    return parts.scheme in {"http", "https"} and is_host and is_plain


class StrictSerializer(serializers.Serializer[Any]):
    """A mapping without unknown keys, read as the arguments of `shape`.

    `needs` names the keys that must be there; `partial=True` makes the others optional.
    """

    default_error_messages = {"invalid": "must be a mapping"}
    needs: Sequence[str] = ()
    shape: Callable[..., Any] = dict

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("invalid")
        errors: Any = {}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            errors = error.detail
        known = ErrorDetail(f"unknown key; known are {', '.join(self.fields)}", AT_KEY)
        errors |= {key: [known] for key in data if key not in self.fields}
        if lack := self.lack_of(data):
            errors[OWN] = [lack]
        if errors:
            raise ValidationError(errors)
        return values

    def lack_of(self, data: Mapping[str, Any]) -> str:
        """Return an error that names the keys which a mapping lacks, or an empty text."""
        missing = [key for key in self.needs if key not in data]
        return f"needs {', '.join(missing)}" if missing else ""

    def validate(self, attrs: dict[str, Any]) -> Any:
        return self.shape(**attrs)


class Text(Field):
    """A string; numbers and the like need quotes to be one."""

    default_error_messages = {
        "type": "must be a string",
        "length": "must have 1 to {maximum} characters",
        "unstorable": "must not hold a NUL or half a surrogate pair",
    }

    def __init__(self, maximum: int = 2048, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.maximum = maximum

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("type")
        if not 1 <= len(data) <= self.maximum:
            self.fail("length", maximum=self.maximum)
        if UNSTORABLE.search(data):
            self.fail("unstorable")
        return data


class Secret(Text):
    """A text, or the value of the variable that `${NAME}` refers to."""

    def to_internal_value(self, data: Any) -> str:
        return resolve(super().to_internal_value(data), self.context["environ"])


class ApiKey(Secret):
    """A key for an upstream."""

    def to_internal_value(self, data: Any) -> str:
        return as_key(super().to_internal_value(data))


class BaseURL(Text):
    default_error_messages = {"url": "must be an http or https address without a query"}

    def to_internal_value(self, data: Any) -> str:
        url: str = super().to_internal_value(data)
        return url.rstrip("/") if is_base_url(url) else self.fail("url")


class Principal(Text):
    """A principal behind its tenant and a slash, read as the pair."""

    default_error_messages = {"principal": "must be tenant/principal"}

    def to_internal_value(self, data: Any) -> tuple[str, str]:
        tenant, _, principal = super().to_internal_value(data).partition("/")
        if not (is_name(tenant) and is_name(principal)):
            self.fail("principal")
        return tenant, principal


class Boolean(Field):
    default_error_messages = {"type": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        return data if isinstance(data, bool) else self.fail("type")


class Number(Field):
    """A number from `minimum` to `maximum`, of type `kind`."""

    default_error_messages = {
        "float": "must be a number from {minimum:g} to {maximum:g}",
        "int": "must be an integer from {minimum:g} to {maximum:g}",
    }

    def __init__(self, minimum: float, maximum: float, kind: type = float) -> None:
        super().__init__()
        self.minimum, self.maximum, self.kind = minimum, maximum, kind

    def to_internal_value(self, data: Any) -> Any:
        is_number = type(data) in {int, self.kind}
        if not is_number or not self.minimum <= data <= self.maximum:
            self.fail(self.kind.__name__, minimum=self.minimum, maximum=self.maximum)
        return self.kind(data)


class ListOf(serializers.ListField):
    """A list, read as `kind`."""

    default_error_messages = {"not_a_list": "must be a list"}

    def __init__(self, kind: Callable[[Any], Any] = tuple, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind

    def run_validation(self, data: Any = empty) -> Any:
        return self.kind(super().run_validation(data))


def distinct(items: Iterable[str]) -> tuple[str, ...]:
    """Return the items, each once."""
    return tuple(dict.fromkeys(items))


def all_different(message: str, *, key: Callable[[Any], Any] = str) -> Any:
    """Return a validator of lists; `message` is the error of an item whose key is repeated."""

    def check(items: Sequence[Any]) -> None:
        keys = [key(item) for item in items]
        repeated = [n for n, value in enumerate(keys) if value in keys[:n]]
        errors: Any = {number: [message.format(keys[number])] for number in repeated}
        if errors:
            raise ValidationError(errors)

    return check


def one_of(known: Iterable[str], message: str = "must be one of") -> Any:
    """Return a validator that accepts the known texts."""

    def check(text: str) -> None:
        if text not in known:
            raise ValidationError(f"{message} {', '.join(known)}")

    return check


def check_name(text: str) -> None:
    """Raise ValidationError for what cannot name a tenant or a principal."""
    if not is_name(text):
        raise ValidationError(f"must have {NAME_RULE}")
