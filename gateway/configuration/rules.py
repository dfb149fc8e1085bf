"""Types and rules of the configuration's values. A rule raises ValueError with its reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import AfterValidator, Field, Strict

from gateway.identity import NAME
from webhooks_core.network.url_policy import UrlPolicy, own_listener
from webhooks_core.signing.schemes import is_empty

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
BARE_REFERENCE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
MAX_SECRET = 256


def resolve(text: str) -> str:
    """Return a secret, or the value of the variable that `${NAME}` refers to.

    Outside the settings, only this reads the environment: the operator chooses the names.
    """
    match = REFERENCE.fullmatch(text)
    if BARE_REFERENCE.fullmatch(text):
        # Not its name: a secret may look like one.
        raise ValueError("must be written ${NAME}, with braces, to name a variable")
    if match is None and "${" in text:
        raise ValueError("is neither a text nor a whole ${NAME}")
    if match is None:
        return text
    if not (value := os.environ.get(match[1])):
        raise ValueError(f"the environment variable {match[1]} is not set")
    return value


def as_key(text: str) -> str:
    """Return a key without the line break of the file that it comes from.

    A key that cannot stand in a header is refused.
    """
    key = text.strip()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("must be printable ASCII")
    return key


def url_policy(*, base_url: str, local: bool) -> UrlPolicy:
    """Return the rule for subscription URLs: public hosts, and loopback locally."""
    schemes = frozenset({"http", "https"})
    return UrlPolicy(
        schemes=schemes,
        local_schemes=schemes if local else frozenset(),
        own=own_listener(base_url),
    )


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


def _address(url: str) -> str:
    """Return an http or https address without a slash at its end."""
    try:
        parts = urlsplit(url)
        is_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_host = False
    is_plain = url.isprintable() and " " not in url and not set(url) & {"?", "#"}
    if not (is_plain and is_host and parts.scheme in {"http", "https"}):
        raise ValueError("must be an http or https address without a query")
    return url.rstrip("/")


def _proxy(url: str) -> str:
    if not _address(url).startswith("http://"):
        raise ValueError("must be an http address: TLS goes through it by CONNECT")
    return url


def _checked_url(url: str) -> str:
    """Check the syntax of a URL; its addresses are checked at each connection."""
    url_policy(base_url=settings.BASE_URL, local=settings.LOCAL).check_syntax(url)
    return url


def each_once(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def unique(*keys: str) -> AfterValidator:
    """Annotate a list whose items differ in the values of these keys."""

    def check(items: tuple[Any, ...]) -> tuple[Any, ...]:
        values = [[getattr(item, key) for key in keys] for item in items]
        for value in values:
            if values.count(value) > 1:
                names = " and ".join(keys)
                raise ValueError(f"several have the {names} {' and '.join(value)}")
        return items

    return AfterValidator(check)


Int = Annotated[int, Strict()]
Float = Annotated[float, Strict(), Field(allow_inf_nan=False)]
# Without NUL, which no database stores and no request can contain.
Text = Annotated[str, Field(min_length=1, max_length=2048, pattern=r"^[^\x00]*$")]
Names = Annotated[tuple[Text, ...], AfterValidator(each_once)]
Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
# `tenant/principal`.
Principal = Annotated[str, Field(pattern=f"^{NAME.pattern}/{NAME.pattern}$")]
SubscribableURL = Annotated[Text, AfterValidator(_checked_url)]
Reference = Annotated[Text, AfterValidator(resolve)]
Address = Annotated[Reference, AfterValidator(_address)]
Proxy = Annotated[Address, AfterValidator(_proxy)]
ApiKey = Annotated[Reference, AfterValidator(as_key)]
Secret = Annotated[Reference, AfterValidator(check_secret)]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")]
