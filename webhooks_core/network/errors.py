"""How attempts end: the outcome that an error of the network means, and a text without an address."""

from __future__ import annotations

import errno
import socket
import ssl

from django.db import models

from webhooks_core.network.addresses import BlockedAddressError


class Outcome(models.TextChoices):
    """How an attempt ended."""

    OK = "ok", "Delivered"
    HTTP = "http", "No valid HTTP"  # or a status that is not 2xx
    TIMEOUT = "timeout", "Timeout"
    DNS = "dns", "Name not found"
    CONNECT = "connect", "No connection"
    TLS = "tls", "TLS failed"
    BLOCKED = "blocked", "Address refused"
    UNSIGNED = "unsigned", "Not signed"  # the secret cannot be decrypted or used
    INTERRUPTED = "interrupted", "Interrupted"  # the dispatcher died


class MalformedUrlError(ValueError):
    """No request can be sent to this URL."""


class NotHttpError(Exception):
    """The receiver sent something that is not HTTP/1.1, or more than is accepted."""


class ProxyUnavailableError(OSError):
    """The egress proxy does not serve us: not the receiver's fault. The text says why."""


class ProxyRefusedError(OSError):
    """The egress proxy did not connect to the receiver; the text has the status of its answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the egress proxy did not connect (HTTP {status})")


# This machine lacks descriptors or memory: not the receiver's fault, and temporary.
_NO_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_RESOLVER_RESOURCES = {socket.EAI_SYSTEM, socket.EAI_MEMORY}
NO_LOCAL_RESOURCES = "this machine has no descriptor or memory left"


def local_failure(error: BaseException) -> str:
    """Name the resource of this machine whose lack prevented the attempt; "" if none did."""
    causes = [cause for cause in _causes(error) if isinstance(cause, OSError)]
    # gaierror has numbers of its own.
    resolver = {cause.errno for cause in causes if isinstance(cause, socket.gaierror)}
    system = {cause.errno for cause in causes if not isinstance(cause, socket.gaierror)}
    if resolver & _NO_RESOLVER_RESOURCES or system & _NO_RESOURCES:
        return NO_LOCAL_RESOURCES
    for cause in causes:
        if isinstance(cause, ProxyUnavailableError):
            return str(cause)
    return ""


_TLS_ERRORS = (ssl.SSLError, ssl.CertificateError)
_CLOSED = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
# The first line that fits any of an error's causes decides.
_OUTCOMES: tuple[
    tuple[type[BaseException] | tuple[type[BaseException], ...], Outcome, str], ...
] = (
    (
        BlockedAddressError,
        Outcome.BLOCKED,
        "the host leads to an address that is not public",
    ),
    (ProxyRefusedError, Outcome.CONNECT, ""),
    (socket.gaierror, Outcome.DNS, "the host name could not be resolved"),
    (_TLS_ERRORS, Outcome.TLS, ""),
    (_CLOSED, Outcome.CONNECT, "the connection was closed without an answer"),
    (ConnectionRefusedError, Outcome.CONNECT, "the connection was refused"),
    (NotHttpError, Outcome.HTTP, "the answer was not valid HTTP"),
    (MalformedUrlError, Outcome.BLOCKED, "the url is malformed"),
)


def classify(error: BaseException) -> tuple[Outcome, str]:
    """Return the outcome of an attempt that raised this, and a text without an address."""
    causes = _causes(error)
    for kinds, outcome, text in _OUTCOMES:
        for cause in causes:
            if isinstance(cause, kinds):
                return outcome, text or tls_reason(cause) or str(cause)
    return Outcome.CONNECT, "the connection failed"


def tls_reason(error: BaseException) -> str:
    """Return why TLS failed, as OpenSSL says it; "" if it did not fail."""
    for cause in _causes(error):
        if isinstance(cause, _TLS_ERRORS):
            inner = getattr(cause, "certificate_error", cause)
            message = getattr(inner, "verify_message", "")
            reason = message or getattr(inner, "reason", "") or "handshake"
            return f"TLS failed: {reason}"[:200]
    return ""


def forget_frames(error: BaseException) -> None:
    """Let an error no longer refer to frames, which refer to it: with them a request's body stays.

    Only the garbage collector would free such a cycle, some thousand objects later.
    """
    for cause in _causes(error):
        cause.__traceback__ = None


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, of which one may be a group."""
    causes: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending and len(causes) < 32:
        cause = pending.pop()
        if cause is None or cause in causes:
            continue
        causes.append(cause)
        pending += [cause.__cause__, cause.__context__]
        pending += getattr(cause, "exceptions", ())
    return causes
