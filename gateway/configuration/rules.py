"""Types and rules of the configuration's values. A rule raises ValueError with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from gateway.identity import NAME
from gateway.webhooks import url_policy
from webhooks_core.signing.schemes import is_empty

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
BARE_REFERENCE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
MAX_SECRET = 256
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", re.ASCII)
# What `extra_headers` and `extra_body` cannot change: other parts of the request depend on it.
OWN_HEADERS = frozenset(
    {
        *("host", "content-length", "content-type", "content-encoding"),
        *("transfer-encoding", "connection", "keep-alive", "te", "trailer"),
        *("upgrade", "expect", "accept-encoding", "x-request-id"),
    }
)
OWN_FIELDS = frozenset({"model", "stream", "messages", "input"})


# None is what a missing key means. The file cannot say it.
NOT_NULL = GetPydanticSchema(lambda type_, handler: handler(get_args(type_)[0]))


class FromFile:
    """A mapping without unknown keys."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


def resolve(text: str, environ: Mapping[str, str]) -> str:
    """Return a secret, or the value of the variable that `${NAME}` refers to."""
    match = REFERENCE.fullmatch(text)
    if BARE_REFERENCE.fullmatch(text):
        # Not its name: a secret may look like one.
        raise ValueError("must be written ${NAME}, with braces, to name a variable")
    if match is None and "${" in text:
        raise ValueError("is neither a text nor a whole ${NAME}")
    if match is None:
        return text
    if not environ.get(match[1]):
        raise ValueError(f"the environment variable {match[1]} is not set")
    return environ[match[1]]


def as_key(text: str) -> str:
    """Return a key without the line break of the file that it comes from.

    A key that cannot stand in a header is refused.
    """
    key = text.strip()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("must be printable ASCII")
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


def check_secret(secret: str) -> str:
    """Return a secret for signatures that a subscriber or the file chose."""
    minimum = settings.GATEWAY_MIN_SECRET_LENGTH
    if not minimum <= len(secret) <= MAX_SECRET:
        raise ValueError(f"must have {minimum} to {MAX_SECRET} characters")
    if not (secret.isascii() and secret.isprintable()):
        raise ValueError("must be printable ASCII")
    if is_empty(secret):
        raise ValueError("must be more than whsec_ or spaces")
    return secret


def _base_url(url: str) -> str:
    if not is_base_url(url):
        raise ValueError("must be an http or https address without a query")
    return url.rstrip("/")


def _check_url(url: str) -> None:
    """Check the syntax of a URL; its addresses are checked at each connection."""
    url_policy(base_url=settings.BASE_URL, local=settings.LOCAL).check_syntax(url)


def _storable(text: str) -> str:
    """Refuse a text that no database stores and no request can contain."""
    if "\0" in text:
        raise ValueError("must not hold a NUL")
    return text


def _resolved(text: str, info: ValidationInfo[Mapping[str, Mapping[str, str]]]) -> str:
    return resolve(text, info.context["environ"])


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotates a text that is one of a registry's names."""

    known: Iterable[str]

    def __get_pydantic_core_schema__(self, *_: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema([*self.known])


def read_as(source: Any, function: Callable[[Any], Any]) -> GetPydanticSchema:
    """Annotate a type whose values are read as another type, and passed through `function`."""
    return GetPydanticSchema(
        lambda _, handler: core_schema.no_info_after_validator_function(
            function, handler.generate_schema(source)
        )
    )


def accepted_by(check: Callable[[Any], object]) -> AfterValidator:
    """Annotate a value about which a function raises no ValueError."""

    def accepted(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(accepted)


def all_different(*keys: str) -> AfterValidator:
    """Annotate a list whose items differ in the values of these keys."""

    def check(items: Sequence[Any]) -> Sequence[Any]:
        values = [[getattr(item, key) for key in keys] for item in items]
        text = f"has the same {' and '.join(keys)} as an earlier one"
        raise_all(
            ((number,), text)
            for number, value in enumerate(values)
            if value in values[:number]
        )
        return items

    return AfterValidator(check)


def _proxy(url: str) -> str:
    if not is_base_url(url) or urlsplit(url).path not in {"", "/"}:
        raise ValueError("must be the http or https address of a proxy")
    return url


def _header_names(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if not HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a header")
        if name.lower() in OWN_HEADERS or name.lower().startswith("proxy-"):
            raise ValueError(f"must not set {name}")
    return headers


def as_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping as a request would have it: YAML has dates, NaN and cycles, too."""
    try:
        read: dict[str, Any] = orjson.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("must hold only what JSON has") from error
    return read


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    if own := OWN_FIELDS & body.keys():
        raise ValueError(f"must not set {', '.join(sorted(own))}")
    return as_json(body)


def flag_or_names(value: Any, read: Callable[[Any], Any]) -> Any:
    """Read true, false, or a list of names."""
    return value if isinstance(value, bool) else read(value)


def check_fallbacks(entries: Sequence[Any]) -> Sequence[Any]:
    """Refuse a fallback that is no other entry of the file."""
    names = {entry.name for entry in entries}
    text = "must be the name of another entry"
    raise_all(
        ((number, key, place), text)
        for number, entry in enumerate(entries)
        for key in ("fallbacks", "context_fallbacks")
        for place, name in enumerate(getattr(entry, key))
        if name not in names - {entry.name}
    )
    return entries


Fault = tuple[tuple[str | int, ...], str]


def raise_all(faults: Iterable[Fault]) -> None:
    """Raise the faults of a value, each with its place, if there is one."""
    details = [
        InitErrorDetails(type=PydanticCustomError("fault", text), loc=place, input=None)
        for place, text in faults
    ]
    if details:
        raise ValidationError.from_exception_data("", details)


def not_empty(targets: tuple[Any, ...]) -> tuple[Any, ...]:
    if not targets:
        raise ValueError("needs at least one target")
    return targets


def each_once(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


Text = Annotated[
    str, Field(strict=True, min_length=1, max_length=2048), AfterValidator(_storable)
]
Name = Annotated[str, Field(strict=True, pattern=f"^{NAME.pattern}$")]
Principal = Annotated[
    tuple[str, str],
    read_as(
        Annotated[str, Field(strict=True, pattern=f"^{NAME.pattern}/{NAME.pattern}$")],
        lambda text: tuple(text.split("/")),
    ),
]
SubscribableURL = Annotated[Text, accepted_by(_check_url)]
Reference = Annotated[Text, AfterValidator(_resolved)]
BaseURL = Annotated[Reference, AfterValidator(_base_url)]
ApiKey = Annotated[Reference, AfterValidator(as_key)]
Proxy = Annotated[Reference, AfterValidator(_proxy)]
ExtraHeaders = Annotated[
    dict[Annotated[str, Field(strict=True)], ApiKey], AfterValidator(_header_names)
]
JsonObject = Annotated[dict[str, Any], AfterValidator(as_json)]
ExtraBody = Annotated[dict[str, Any], AfterValidator(_extra_body)]
Names = Annotated[tuple[Text, ...], AfterValidator(each_once)]
FlagOrNames = Annotated[
    bool | Names,
    GetPydanticSchema(
        lambda _, handler: core_schema.no_info_wrap_validator_function(
            flag_or_names,
            handler.generate_schema(Names),
            json_schema_input_schema=core_schema.union_schema(
                [core_schema.bool_schema(), handler.generate_schema(Names)]
            ),
        )
    ),
]
Secret = Annotated[Reference, AfterValidator(check_secret)]
