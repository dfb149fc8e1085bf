"""What `manage.py doctor --reach` requests from BASE_URL, as an outside client would."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urljoin

import orjson
import requests
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from urllib3.exceptions import MaxRetryError, NameResolutionError

from config.operations import own_requests, stream_probe
from webhooks_core.network.errors import tls_reason

TIMEOUT_S = 5
# A busy machine may read all parts of a stream at once, and a proxy that buffers always does.
STREAMS_AGAIN = 2


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """The result of one examination; the message says what to do unless the level is OK."""

    name: str
    level: Level
    message: str


Verdict = tuple[Level, str]  # of a finding


def ok(message: str) -> Verdict:
    return Level.OK, message


def warning(message: str) -> Verdict:
    return Level.WARNING, message


def failed(message: str) -> Verdict:
    return Level.FAILED, message


def examine() -> Iterator[Finding]:
    """Send every probe; stop after the first one to which nothing answers."""
    with own_requests.session() as session:
        session.headers["Authorization"] = "Bearer doctor"
        for name, (path, read) in PROBES.items():
            try:
                url = settings.BASE_URL + path()
                with _get(session, url) as response:
                    url = url.partition("?")[0]
                    for level, message in read(response):
                        yield Finding(name, level, message.format(url=url))
            except (requests.RequestException, ValueError) as error:
                yield Finding(name, Level.FAILED, unreachable(error))
                if isinstance(error, requests.ConnectionError):
                    return


def _get(session: requests.Session, url: str) -> requests.Response:
    return session.get(url, timeout=TIMEOUT_S, allow_redirects=False, stream=True)


def unreachable(error: BaseException) -> str:
    """Return why BASE_URL gave no usable response, and what to do about it."""
    base = settings.BASE_URL
    cause = error.args[0] if error.args else error
    reason = cause.reason if isinstance(cause, MaxRetryError) else cause
    if isinstance(reason, NameResolutionError):
        return f"The name in {base} cannot be resolved: correct the DNS or BASE_URL."
    if isinstance(error, requests.exceptions.SSLError):
        return (
            f"{base} has a certificate that is not trusted ({tls_reason(error)}): renew it, "
            "send the whole chain, or name its private authority in EXTRA_CA_FILE."
        )
    if isinstance(error, requests.ConnectTimeout):
        return f"{base} accepts no connection within {TIMEOUT_S} s: open the firewall."
    if isinstance(error, requests.ConnectionError):
        return f"Nothing listens at {base}: start the proxy, or correct its port."
    if isinstance(error, requests.Timeout):
        return (
            f"{base} sends no response within {TIMEOUT_S} s: look at the proxy's log."
        )
    return f"{base} sends no valid response ({type(error).__name__})."


def _verdict(
    response: requests.Response, *, is_right: bool, remedy: str = ""
) -> Verdict:
    if is_right:
        return ok("{url} answers.")
    remedy = remedy or ", and not as Signpost does: the proxy replaces or misses it."
    return failed(f"{{url}} is answered {response.status_code}{remedy}")


def _address(response: requests.Response) -> Iterator[Verdict]:
    remedy = ", and not as Signpost does: BASE_URL or the proxy leads elsewhere."
    if response.status_code in {502, 503, 504}:
        remedy = (
            " by the proxy: start the web server, or correct the address that the proxy passes "
            "requests to."
        )
    is_ours = (response.status_code, response.text) == (200, '{"status": "ok"}')
    yield _verdict(response, is_right=is_ours, remedy=remedy)


def _page(response: requests.Response) -> Iterator[Verdict]:
    target = urljoin(response.url, response.headers.get("Location"))
    if response.is_redirect and target == response.url:
        yield failed(
            "{url} redirects to itself: behind a proxy that overwrites X-Forwarded-Proto "
            "set TRUST_X_FORWARDED_PROTO=true; otherwise have the proxy send it."
        )
    else:
        is_ours = response.status_code == 200 and "csrfmiddlewaretoken" in response.text
        yield _verdict(response, is_right=is_ours)


def _static(response: requests.Response) -> Iterator[Verdict]:
    is_css = response.headers.get("Content-Type", "").lower().startswith("text/css")
    is_ours = response.status_code == 200 and is_css and bool(response.content)
    yield _verdict(response, is_right=is_ours)


def _api(response: requests.Response) -> Iterator[Verdict]:
    challenge = response.headers.get("WWW-Authenticate", "")
    if response.status_code == 401 and "invalid_token" not in challenge:
        yield failed(
            "{url} received no Authorization header: let the proxy pass it on."
        )
    else:
        is_ours = response.status_code == 401 and response.text.startswith('{"error"')
        yield _verdict(response, is_right=is_ours)


def _stream(response: requests.Response) -> Iterator[Verdict]:
    if response.status_code != 200:
        remedy = (
            ": give this command and the web servers the same SECRET_KEY, and serve with "
            "`manage.py web`."
        )
        yield _verdict(response, is_right=False, remedy=remedy)
        return
    seen, is_in_parts = _read_stream(response)
    if is_in_parts or any(_stream_again() for _ in range(STREAMS_AGAIN)):
        yield ok("{url} arrives piece by piece.")
    else:
        yield failed(
            "{url} arrives in one piece: switch off buffering in the proxy "
            "(nginx: `proxy_buffering off`)."
        )
    if seen.get("x_forwarded_proto") and not seen.get("is_trusted"):
        yield warning(
            "X-Forwarded-Proto arrives and is not trusted: when the proxy overwrites it, set "
            "TRUST_X_FORWARDED_PROTO=true; otherwise have the proxy remove it."
        )


def _read_stream(response: requests.Response) -> tuple[dict[str, object], bool]:
    """Return the first line, and whether the next one came later.

    Raises ValueError for the answer of another site.
    """
    lines = response.iter_lines(chunk_size=1)
    seen = orjson.loads(next(lines, b""))
    if not isinstance(seen, dict):
        raise requests.exceptions.InvalidJSONError
    began = time.monotonic()
    return seen, bool([*lines] and time.monotonic() - began > stream_probe.PAUSE_S / 2)


def _stream_again() -> bool:
    """Return True if another stream arrives, and in parts."""
    url = settings.BASE_URL + stream_probe.address()
    try:
        with own_requests.session() as session, _get(session, url) as response:
            return response.status_code == 200 and _read_stream(response)[1]
    except (requests.RequestException, ValueError):
        return False


Path = Callable[[], str]
Read = Callable[[requests.Response], Iterator[Verdict]]
PROBES: dict[str, tuple[Path, Read]] = {
    "address": (lambda: "/healthz", _address),
    "page": (lambda: settings.LOGIN_URL, _page),
    "static file": (lambda: staticfiles_storage.url("admin/css/base.css"), _static),
    "API": (lambda: "/v1/webhooks", _api),
    "stream": (stream_probe.address, _stream),
}
