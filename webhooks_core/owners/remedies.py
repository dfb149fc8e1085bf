"""What the owner of a receiver does about each kind of failure. Pure: no query."""

from __future__ import annotations

from webhooks_core.network.errors import Outcome

BY_OUTCOME: dict[str, str] = {
    Outcome.TIMEOUT: (
        "Answer 2xx as soon as the event is stored, and do the work afterwards, for example in a"
        " queue. An answer after {timeout_s:g} s counts as none."
    ),
    Outcome.DNS: (
        "The host name of the URL has no address. Check its spelling and its DNS records, or"
        " change the URL."
    ),
    Outcome.CONNECT: (
        "Nothing accepted the connection. Check that your server runs, that it listens on the"
        " port of the URL, and that no firewall blocks us."
    ),
    Outcome.TLS: (
        "The certificate of your server is not valid for us. Check that it has not expired, that"
        " it names this host, and that your server sends the intermediate certificates."
    ),
    Outcome.BLOCKED: (
        "The host leads to an address to which nothing may be sent. Use a host with a public"
        " address."
    ),
    Outcome.UNSIGNED: (
        "The secret of the endpoint cannot be read or used here, so nothing was sent. Rotate the"
        " secret, or ask the operator."
    ),
    Outcome.INTERRUPTED: "Nothing: it is not the fault of your server, and is sent again.",
    Outcome.HTTP: "Your server must answer with HTTP/1.1 and a status.",
}
BY_STATUS = {
    400: "Your code refused the body. Compare it with the event type, and accept new fields.",
    401: (
        "Your server wants credentials, or did not accept the signature. Check the signature with"
        " the headers and the body that it received."
    ),
    403: (
        "Your server, or a firewall before it, refused the request. If your code checks the"
        " signature, check it with the headers and the body that it received."
    ),
    404: "Your server has nothing at this path. Change the URL, or add the route.",
    405: "Your server does not accept POST at this path.",
    408: "Your server waited in vain for the body. Look for a limit of a proxy before it.",
    410: "Your server says that this address is gone. Change the URL or delete the endpoint.",
    413: "The body is too large for your server. Raise its limit for this path.",
    415: "Your server must accept the media type application/json.",
    422: "Your code refused the body. Compare it with the event type, and accept new fields.",
    429: "Your server gets too many requests. Raise its limit, or answer faster.",
    502: "The proxy before your server could not reach it. Check that your server runs.",
    503: "Your server, or the proxy before it, was not available. Check that it runs.",
    504: "Your server took too long for the proxy before it. Answer first, and work afterwards.",
}
REDIRECTED = (
    "Redirects are not followed. Change the URL to the address that it leads to."
)
CLIENT_ERROR = "Your server refused the request. Its log at this time says why."
SERVER_ERROR = (
    "Your code raised an error. Look into the log of your server at this time, fix it, and then"
    " resend the event."
)


def remedy(outcome: str, status: int | None, *, timeout_s: float) -> str:
    """Return what the owner does about a failed attempt; "" after a success."""
    if outcome == Outcome.OK:
        return ""
    if status is None:
        return BY_OUTCOME.get(outcome, "").format(timeout_s=timeout_s)
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status < 400:
        return REDIRECTED
    return CLIENT_ERROR if status < 500 else SERVER_ERROR
