"""Typed environment variables for settings.py, with every fault in one message."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import dj_database_url
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from environs import EnvError, EnvValidationError, FileAwareEnv, validate

# More overflows a column of a database, a date or a timer.
MOST = 2**31 - 1


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


def words(value: str) -> list[str]:
    """Split a comma-separated list; the empty text is the empty list."""
    return [word for word in (part.strip() for part in value.split(",")) if word]


def some(value: str) -> list[str]:
    """Split a list that must not be empty."""
    if not (found := words(value)):
        raise EnvError("Needs at least one value.")
    return found


def fernet_keys(value: str) -> list[str]:
    """Return a non-empty list of Fernet keys (32 bytes each, url-safe base64)."""
    try:
        keys = some(value)
        for key in keys:
            Fernet(key)
    except EnvError:
        raise
    except ValueError as error:  # whose text may show the key
        raise EnvError("Holds a key that is not 32 url-safe base64 bytes.") from error
    return keys


def networks(value: str) -> list[str]:
    """Return a list of networks in CIDR notation."""
    found = words(value)
    try:
        for word in found:
            ipaddress.ip_network(word)
    except ValueError as error:
        raise EnvError(f"Not in CIDR notation: {error}.") from error
    return found


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


host = matching(r"\*|\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", "a host name")

PARSERS: dict[str, Callable[[str], Any]] = {
    "origin": origin,
    "words": words,
    "some": some,
    "origins": lambda value: [w if w == "*" else origin(w) for w in words(value)],
    # `.name` has the sub-domains too, `*` is every host.
    "hosts": lambda value: [host(word) for word in words(value)],
    "fernet_keys": fernet_keys,
    "networks": networks,
    "database": database,
    "redis_url": matching(r"(rediss?://\S+)?", "a redis://… address"),
    "rate": matching(
        r"([1-9][0-9]*/(second|minute|hour|day))?",
        "a rate such as 60/hour (per second, minute, hour or day)",
    ),
    "metrics_token": matching(
        r"([\x21-\x7e]{16,256})?",
        "a token of 16 to 256 printable ASCII characters without spaces",
    ),
    "ca_file": ca_file,
}


class Environment(FileAwareEnv):
    """The environment variables; `NAME_FILE` names a file that holds NAME's value."""

    def __init__(self) -> None:
        super().__init__(eager=False, strip_whitespace=True)
        self._faults: dict[str, str] = {}
        for name, parser in PARSERS.items():
            self.add_parser(name, parser)

    def integer(
        self, name: str, default: int, *, least: int = 0, most: int = MOST
    ) -> int:
        """Return an integer within these bounds."""
        bounds = validate.Range(min=least, max=most)
        return self.int(name, default, validate=bounds)

    def _get_value(self, env_key: str, default: Any) -> Any:
        """Return the text of NAME or NAME_FILE; the default for a file that cannot be read."""
        try:
            value = super()._get_value(env_key, default)
        except (OSError, ValueError):
            self._faults[env_key] = f"{env_key}_FILE names no readable text file."
            return default
        return value.strip() if isinstance(value, str) else value

    def complete(self) -> None:
        """Raise ImproperlyConfigured that names every missing or malformed variable."""
        try:
            self.seal()
        except EnvValidationError as error:
            messages = cast("dict[str, list[str]]", error.error_messages)
            faults = {name: " ".join(texts) for name, texts in messages.items()}
            self._faults = faults | self._faults
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
