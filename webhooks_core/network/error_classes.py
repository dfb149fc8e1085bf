"""What an error of the network means: its class, and a text that tells no address."""

from __future__ import annotations

import errno
import socket
import ssl

import aiohttp

from webhooks_core.outcomes import Outcome


class BlockedAddressError(OSError):
    """The host leads to an address that no webhook may be sent to."""


# This machine has no descriptor or memory left: nobody else's fault, and soon over.
_LACKING = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    }
)
_RESOLVER_LACKING = frozenset({socket.EAI_SYSTEM, socket.EAI_MEMORY})
NO_LOCAL_RESOURCES = "this machine has no descriptor or memory left"
# The same of its ports, unless the receiver has an address that we can never reach.
NO_PORT = "this machine has no address or port left"


def local_failure(error: BaseException) -> str:
    """Return for want of what this machine could not even try; nothing when it could."""
    causes = [it for it in _chain(error) if isinstance(it, OSError)]
    names = {it.errno for it in causes if isinstance(it, socket.gaierror)}
    others = {it.errno for it in causes if not isinstance(it, socket.gaierror)}
    if names & _RESOLVER_LACKING or others & _LACKING:
        return NO_LOCAL_RESOURCES
    return NO_PORT if errno.EADDRNOTAVAIL in others else ""


def classify(error: BaseException) -> tuple[Outcome, str]:
    """Return what went wrong and a text for it, which tells no address."""
    causes = _chain(error)
    for kinds, outcome, text in _KINDS:
        if found := next((it for it in causes if isinstance(it, kinds)), None):
            return outcome, text or _tls_text(found)
    return Outcome.CONNECT, "the connection failed"


_TLS_ERRORS = (ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError)
_KINDS: tuple[tuple[tuple[type[BaseException], ...], Outcome, str], ...] = (
    (
        (BlockedAddressError,),
        Outcome.BLOCKED,
        "the host leads to an address that is not public",
    ),
    ((socket.gaierror,), Outcome.DNS, "the host name could not be resolved"),
    (_TLS_ERRORS, Outcome.TLS, ""),
    (
        (
            aiohttp.ServerDisconnectedError,
            ConnectionResetError,
            ConnectionAbortedError,
            BrokenPipeError,
        ),
        Outcome.CONNECT,
        "the connection was closed without an answer",
    ),
    ((ConnectionRefusedError,), Outcome.CONNECT, "the connection was refused"),
    (
        (aiohttp.ClientResponseError, aiohttp.ClientPayloadError),
        Outcome.HTTP,
        "the answer was not valid HTTP",
    ),
    ((aiohttp.InvalidURL,), Outcome.BLOCKED, "the url is malformed"),
)


def tls_reason(error: BaseException) -> str:
    """Return why TLS failed, as OpenSSL says it; the empty text when it did not fail."""
    found = next((it for it in _chain(error) if isinstance(it, _TLS_ERRORS)), None)
    return "" if found is None else _tls_text(found)


def _tls_text(error: BaseException) -> str:
    inner = getattr(error, "certificate_error", error)
    reason = getattr(inner, "verify_message", "") or getattr(inner, "reason", "")
    return f"TLS failed: {reason or 'handshake'}"[:200]


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and what is behind it: aiohttp wraps, and its cause may be a group."""
    found: list[BaseException] = []
    open_ends: list[BaseException | None] = [error]
    while open_ends and len(found) < 32:
        it = open_ends.pop()
        if it is None or it in found:
            continue
        found.append(it)
        open_ends += [it.__cause__, it.__context__, getattr(it, "os_error", None)]
        open_ends += getattr(it, "exceptions", ())
    return found
