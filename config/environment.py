"""Typed environment variables for settings.py, with every fault in one message."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import EllipsisType
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import dj_database_url
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

# More overflows a column of a database, a date or a timer.
MOST = 2**31 - 1

T = TypeVar("T")


class EnvError(Exception):
    """What is wrong with a variable; never the value of a secret."""


def is_loopback(host: str) -> bool:
    """Return True if a host name or literal address means this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_local(**hosts: Iterable[str]) -> None:
    """Raise ImproperlyConfigured that names every variable with a host beyond this machine."""
    faults = [
        f"{name}: a local instance serves this machine alone; "
        "set ENVIRONMENT=production to be reached from elsewhere."
        for name, values in hosts.items()
        if not all(map(is_loopback, values))
    ]
    if faults:
        raise ImproperlyConfigured("\n  ".join(faults))


def matching(pattern: str, a: str) -> Callable[[str], str]:
    """Return a parser that accepts the texts of a pattern: `a` says what they are."""

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise EnvError(f"Not {a}.")
        return value

    return parse


def origin(value: str) -> str:
    """Return a public origin such as `https://signpost.example`: no path, no trailing slash."""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - raises for a port above 65535
    except ValueError as error:
        raise EnvError("Not a valid URL.") from error
    is_http = parts.scheme in {"http", "https"} and parts.hostname
    if not is_http or parts.username is not None:
        raise EnvError("Not an http or https origin.")
    if value != f"{parts.scheme}://{parts.netloc}":
        raise EnvError(
            "Give the origin alone: scheme, host and port, without a trailing slash."
        )
    return value


def each(parse: Callable[[str], str], least: int = 0) -> Callable[[str], list[str]]:
    """Return a parser of comma-separated values; the empty text is the empty list."""

    def parse_each(value: str) -> list[str]:
        found = [parse(word) for part in value.split(",") if (word := part.strip())]
        if len(found) < least:
            raise EnvError("Needs at least one value.")
        return found

    return parse_each


def fernet_key(value: str) -> str:
    """Return a Fernet key (32 bytes, url-safe base64)."""
    try:
        Fernet(value)
    except ValueError as error:  # whose text may show the key
        raise EnvError("Holds a key that is not 32 url-safe base64 bytes.") from error
    return value


def network(value: str) -> str:
    """Return a network in CIDR notation."""
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise EnvError(f"Not in CIDR notation: {error}.") from error
    return value


# Detect within 12 s that the server is unreachable: a lease lasts 15 s.
POSTGRES_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def database(value: str) -> dict[str, Any]:
    """Return the entry of DATABASES for a `sqlite:///…` or `postgres://…` address."""
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(value))
    except (
        dj_database_url.ParseError,
        dj_database_url.UnknownSchemeError,
        ValueError,
    ) as error:
        # The parser's message may contain the password.
        raise EnvError("Not a sqlite:///… or postgres://… address.") from error
    if parsed["ENGINE"] not in {
        "django.db.backends.sqlite3",
        "django.db.backends.postgresql",
    }:
        raise EnvError("Only sqlite:///… and postgres://… are supported.")
    if parsed["ENGINE"] == "django.db.backends.postgresql":
        parsed["OPTIONS"] = POSTGRES_OPTIONS | parsed.get("OPTIONS", {})
    return parsed


def with_query(url: str, defaults: Mapping[str, float]) -> str:
    """Return a URL whose query has these options, except those that it already sets."""
    parts = urlsplit(url)
    named = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    missing = {name: value for name, value in defaults.items() if name not in named}
    query = "&".join(filter(None, (parts.query, urlencode(missing))))
    return parts._replace(query=query).geturl()


def ca_file(value: str) -> str:
    """Return the path of a PEM file of certificates, or the empty text for none."""
    if value:
        try:
            ssl.create_default_context().load_verify_locations(value)
        except OSError as error:
            raise EnvError(
                f"Names {value!r}, which is not a readable PEM file of certificates."
            ) from error
    return value


def integer(least: int = 0, most: int = MOST) -> Callable[[str], int]:
    """Return a parser of integers within these bounds."""

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError as error:
            raise EnvError("Not a valid integer.") from error
        if not least <= number <= most:
            raise EnvError(f"Must be from {least} to {most}.")
        return number

    return parse


def choice(values: Mapping[str, T], a: str) -> Callable[[str], T]:
    """Return a parser of these words, in upper or lower case."""
    named = {name.lower(): value for name, value in values.items()}

    def parse(value: str) -> T:
        if value.lower() not in named:
            raise EnvError(f"Not {a}.")
        return named[value.lower()]

    return parse


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser of some texts."""
    return choice({name: name for name in names}, f"one of: {', '.join(names)}")


BOOLEANS = {
    "true": True,
    "yes": True,
    "1": True,
    "false": False,
    "no": False,
    "0": False,
}
boolean = choice(BOOLEANS, "a valid boolean")
log_level = choice(logging.getLevelNamesMapping(), "a valid log level")
# `.name` has the sub-domains too, `*` is every host.
host = matching(r"\*|\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", "a host name")
origins = each(lambda word: word if word == "*" else origin(word))
redis_url = matching(r"(rediss?://\S+)?", "a redis://… address")
rate = matching(
    r"([1-9][0-9]*/(second|minute|hour|day))?",
    "a rate such as 60/hour (per second, minute, hour or day)",
)
metrics_token = matching(
    r"([\x21-\x7e]{16,256})?",
    "a token of 16 to 256 printable ASCII characters without spaces",
)


class Environment:
    """The environment variables; `NAME_FILE` names a file that holds NAME's value."""

    def __init__(self) -> None:
        self._faults: dict[str, str] = {}

    def __call__(
        self, name: str, parse: Callable[[str], T], default: T | str | EllipsisType
    ) -> T:
        """Return a variable's value, or the default; `...` means that it must be set.

        `complete` raises what is wrong, with all other faults.
        """
        try:
            value: Any = self._text(name)
            if value is None and (value := default) is ...:
                raise EnvError("Environment variable not set.")
            return parse(value.strip()) if isinstance(value, str) else value
        except EnvError as error:
            self._faults[name] = str(error)
            return cast("T", default)

    def _text(self, name: str) -> str | None:
        if not (path := os.environ.get(f"{name}_FILE")):
            return os.environ.get(name)
        try:
            return Path(path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EnvError(f"{name}_FILE names no readable text file.") from error

    def complete(self) -> None:
        """Raise ImproperlyConfigured that names every missing or malformed variable."""
        if self._faults:
            lines = sorted(f"{name}: {text}" for name, text in self._faults.items())
            raise ImproperlyConfigured(
                "\n  ".join(["the environment is not usable", *lines])
            )


def stored_key(path: Path) -> str:
    """Return the Fernet key in a file that only its owner may read; create it if it is missing.

    Raises ImproperlyConfigured.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _store_key(path)
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{path} cannot be read or created: {error.strerror}. A local instance needs a "
            "folder that it can write to, with free space."
        ) from error


def _store_key(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(Fernet.generate_key())
        # Linking is atomic: of two processes that start together, both use the first one's key.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
