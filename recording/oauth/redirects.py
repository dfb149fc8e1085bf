"""Which addresses an application may be sent back to. Pure functions: no Django, no network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

MAX_LENGTH = 2048

# The characters of RFC 3986, without `#` (RFC 6749 section 3.1.2 forbids a fragment) and `@`,
# `\` and their like in the authority: what a browser might read differently is refused. So is `*`,
# which whoever registers it means as a wildcard.
TAIL = r"(?P<tail>(?:/[A-Za-z0-9._~!$&'()+,;=:@%/-]*)?(?:\?[A-Za-z0-9._~!$&'()+,;=:@%/?-]*)?)"
LOOPBACK = re.compile(
    rf"http://(?P<host>127\.0\.0\.1|localhost|\[::1\])(?::(?P<port>\d{{1,5}}))?{TAIL}",
    re.ASCII,
)
PUBLIC = re.compile(
    rf"https://(?P<host>[a-z0-9](?:[a-z0-9.-]{{0,252}}[a-z0-9])?)(?::(?P<port>\d{{1,5}}))?{TAIL}",
    re.ASCII,
)
# What a native application registers with its system (RFC 8252 section 7.1).
PRIVATE = re.compile(
    rf"(?P<scheme>[a-z][a-z0-9+.-]{{0,63}}):(?://[A-Za-z0-9._-]{{1,253}}|(?=/(?!/))){TAIL}",
    re.ASCII,
)
# Schemes that a browser or a system gives a meaning of its own.
NOT_PRIVATE = frozenset(
    {"about", "blob", "data", "file", "filesystem", "ftp", "http", "https", "intent"}
    | {"javascript", "mailto", "sms", "tel", "vbscript", "view-source", "ws", "wss"}
)

# What we add to the query; a second one could make a client read the wrong one (RFC 9207).
RESERVED = frozenset({"code", "state", "iss", "error", "error_description"})


class RedirectRefusedError(ValueError):
    """A redirect URI that no application may have; the text says why."""


class RedirectNotListedError(RedirectRefusedError):
    """A well-formed redirect URI that the operator did not list."""


def _parts(pattern: re.Pattern[str], uri: str) -> re.Match[str] | None:
    found = pattern.fullmatch(uri) if len(uri) <= MAX_LENGTH else None
    if found is None or _names(found["tail"]) & RESERVED:
        return None
    port = found.groupdict().get("port")
    if port is not None and not 0 < int(port) <= 65_535:
        return None
    return found


def _names(tail: str) -> set[str]:
    """Return the names in a query, in lower case, however somebody encoded or divided them."""
    _, _, query = tail.partition("?")
    parts = re.split(r"[&;]", unquote(query))
    return {part.partition("=")[0].lower() for part in parts}


def is_loopback(uri: str) -> bool:
    """Tell whether this is plain http to this very machine (RFC 8252 section 7.3)."""
    return _parts(LOOPBACK, uri) is not None


def is_public(uri: str) -> bool:
    """Tell whether this is an https address that may stand on the allow-list."""
    return _parts(PUBLIC, uri) is not None


def is_private_use(uri: str) -> bool:
    """Tell whether this is a well-formed address of a scheme of an application's own."""
    found = _parts(PRIVATE, uri)
    return found is not None and found["scheme"] not in NOT_PRIVATE


def origin(uri: str) -> str:
    """Return scheme, host and port of a URI that the policy has accepted."""
    return re.match(r"[a-z]+://[^/?]*", uri)[0]  # type: ignore[index]


def is_same(registered: str, requested: str) -> bool:
    """Compare by characters; only the port of a loopback address may differ.

    Native applications listen on whatever port the system gives them (RFC 8252 section 7.3);
    everything else is an exact comparison (RFC 9700 section 2.1).
    """
    if registered == requested:
        return True
    one, other = _parts(LOOPBACK, registered), _parts(LOOPBACK, requested)
    return bool(
        one and other and one.group("host", "tail") == other.group("host", "tail")
    )


@dataclass(frozen=True)
class RedirectPolicy:
    """Loopback for everybody; https only to the very addresses that the operator listed."""

    allowed: frozenset[str]

    def check(self, uri: str) -> None:
        """Raise RedirectRefusedError unless an application may be sent to this address."""
        if is_loopback(uri):
            return
        if is_private_use(uri):
            raise RedirectNotListedError("Addresses of a custom scheme are refused.")
        if not is_public(uri):
            raise RedirectRefusedError(
                "Neither an https address nor http to 127.0.0.1, localhost or [::1]; "
                "userinfo, fragments, reserved query parameters (code, state, iss, error) "
                f"and more than {MAX_LENGTH} characters are refused."
            )
        if uri not in self.allowed:
            raise RedirectNotListedError("This https address is not on the allow-list.")

    def allows(self, uri: str) -> bool:
        """Tell whether `check` would accept this address."""
        try:
            self.check(uri)
        except RedirectRefusedError:
            return False
        return True
