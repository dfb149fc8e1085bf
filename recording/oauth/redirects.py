"""Addresses to which a browser may be sent back. Pure functions: no Django, no network."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from urllib.parse import unquote, urlencode

MAX_LENGTH = 2048

# The characters of RFC 3986, without `#` (RFC 6749 section 3.1.2 forbids a fragment) and `@`,
# `\` and the like in the authority: what a browser might read differently is refused. So is `*`,
# which is meant as a wildcard.
ESCAPE = "%[0-9A-Fa-f]{2}"
TAIL = (
    rf"(?P<tail>(?:/(?:[A-Za-z0-9._~!$&'()+,;=:@/-]|{ESCAPE})*)?"
    rf"(?:\?(?:[A-Za-z0-9._~!$&'()+,;=:@/?-]|{ESCAPE})*)?)"
)
BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
LOOPBACK = re.compile(
    rf"http://(?P<host>127\.0\.0\.1|localhost|\[::1\])(?::(?P<port>\d{{1,5}}))?{TAIL}",
    re.ASCII,
)
PUBLIC = re.compile(
    rf"https://(?P<host>[a-z0-9](?:[a-z0-9.-]{{0,252}}[a-z0-9])?)(?::(?P<port>\d{{1,5}}))?{TAIL}",
    re.ASCII,
)
# Private-use schemes of native applications (RFC 8252 section 7.1).
PRIVATE = re.compile(
    rf"(?P<scheme>[a-z][a-z0-9+.-]{{0,63}}):(?://[A-Za-z0-9._-]{{1,253}}|(?=/(?!/))){TAIL}",
    re.ASCII,
)
# Schemes to which a browser or an operating system gives a meaning of its own.
NOT_PRIVATE = frozenset(
    {"about", "blob", "data", "file", "filesystem", "ftp", "http", "https", "intent"}
    | {"javascript", "mailto", "sms", "tel", "vbscript", "view-source", "ws", "wss"}
)

# The addresses of clients that many people use, by the name of their preset.
PRESETS = {
    "claude": (
        "https://claude.ai/api/mcp/auth_callback",
        "https://claude.com/api/mcp/auth_callback",
    ),
    "chatgpt": ("https://chatgpt.com/connector_platform_oauth_redirect",),
    "vscode": ("https://vscode.dev/redirect", "https://insiders.vscode.dev/redirect"),
    "cursor": (
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "https://www.cursor.com/agents/mcp/oauth/callback",
    ),
}

# Parameters that we add to the query: a second one could make a client read the wrong one
# (RFC 9207).
RESERVED = frozenset({"code", "state", "iss", "error", "error_description"})


class RedirectRefusedError(ValueError):
    """No application may have this redirect URI; the message says why."""


class RedirectNotListedError(RedirectRefusedError):
    """The redirect URI is well-formed, but the operator did not list it."""


def _match(pattern: re.Pattern[str], uri: str) -> re.Match[str] | None:
    match = pattern.fullmatch(uri) if len(uri) <= MAX_LENGTH else None
    if match is None or _query_names(match["tail"]) & RESERVED:
        return None
    port = match.groupdict().get("port")
    if port is not None and not 0 < int(port) <= 65_535:
        return None
    return match


def _query_names(tail: str) -> set[str]:
    """Return the parameter names of a query in lower case, however encoded or separated."""
    _, _, query = tail.partition("?")
    parts = re.split(r"[&;]", unquote(query))
    return {part.partition("=")[0].lower() for part in parts}


def is_loopback(uri: str) -> bool:
    """Return True for plain http to the loopback interface (RFC 8252 section 7.3)."""
    return _match(LOOPBACK, uri) is not None


def is_public(uri: str) -> bool:
    """Return True for an https address that the allow-list may hold."""
    return _match(PUBLIC, uri) is not None


def is_private_use(uri: str) -> bool:
    """Return True for a private-use scheme (RFC 8252 section 7.1) that the list may hold."""
    match = _match(PRIVATE, uri)
    return match is not None and match["scheme"] not in NOT_PRIVATE


@cache
def listed(words: tuple[str, ...]) -> frozenset[str]:
    """Return the addresses that OAUTH_ALLOWED_REDIRECTS names. Raises ValueError."""
    return frozenset(uri for word in words for uri in meant_by(word))


def meant_by(word: str) -> tuple[str, ...]:
    """Return the addresses of a preset, or the address itself. Raises ValueError."""
    if word in PRESETS:
        return PRESETS[word]
    if is_public(word) or is_private_use(word):
        return (word,)
    raise ValueError(
        f"Holds {word!r}, which is neither an https address, an address of a "
        f"private-use scheme nor one of {', '.join(PRESETS)}."
    )


def origin(uri: str) -> str:
    """Return scheme, host and port of a URI that the policy has accepted.

    Of `com.example.app:/callback`, which has no host, only the scheme.
    """
    return re.match(r"[a-z][a-z0-9+.-]*:(?://[^/?]*)?", uri)[0]  # type: ignore[index]


def with_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Add parameters to the query of a URI, whose text stays as it is (RFC 6749 section 3.1.2)."""
    address, _, query = uri.partition("?")
    separator = "&" if query and not query.endswith("&") else ""
    return f"{address}?{query}{separator}{urlencode(parameters)}"


def is_same(registered: str, requested: str) -> bool:
    """Compare character by character; only the port of a loopback address may differ.

    Native applications listen on the port that the system gives them (RFC 8252 section 7.3);
    everything else is compared exactly (RFC 9700 section 2.1).
    """
    if registered == requested:
        return True
    matches = _match(LOOPBACK, registered), _match(LOOPBACK, requested)
    one, other = (match and match.group("host", "tail") for match in matches)
    return one is not None and one == other


def check(uri: object, *, allowed: Collection[str], is_public_client: bool) -> None:
    """Accept loopback and the addresses that these words name, nothing else.

    Any program can claim a private-use scheme, so what it receives must be worthless without
    PKCE alone: such an address is for clients without a secret. Raises RedirectRefusedError.
    """
    if not isinstance(uri, str):
        raise RedirectRefusedError("It is not a text.")
    if BROKEN_ESCAPE.search(uri):
        raise RedirectRefusedError("A % must be followed by two hexadecimal digits.")
    if is_loopback(uri):
        return
    is_listed = uri in listed(tuple(allowed))
    if is_private_use(uri):
        if not is_listed:
            raise RedirectNotListedError(
                "This address of a custom scheme is not on the allow-list."
            )
        if not is_public_client:
            raise RedirectNotListedError(
                "Addresses of a custom scheme need token_endpoint_auth_method none."
            )
    elif not is_public(uri):
        raise RedirectRefusedError(
            "Neither an https address nor http to 127.0.0.1, localhost or [::1]; "
            "userinfo, fragments, reserved query parameters (code, state, iss, error) "
            f"and more than {MAX_LENGTH} characters are refused."
        )
    elif not is_listed:
        raise RedirectNotListedError("This https address is not on the allow-list.")
