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
        for name, probe in PROBES.items():
            try:
                for verdict in probe(session):
                    yield Finding(name, *verdict)
            except (requests.RequestException, ValueError) as error:
                yield Finding(name, Level.FAILED, unreachable(error))
                if isinstance(error, requests.ConnectionError):
                    return


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


def _get(session: requests.Session, path: str, **options: object) -> requests.Response:
    return session.get(
        settings.BASE_URL + path,
        timeout=TIMEOUT_S,
        allow_redirects=False,
        **options,  # type: ignore[arg-type]
    )


def _address(session: requests.Session) -> Iterator[Verdict]:
    url, response = f"{settings.BASE_URL}/healthz", _get(session, "/healthz")
    if response.status_code in {502, 503, 504}:
        yield failed(
            f"{url} is answered {response.status_code} by the proxy: start the web server, or "
            "correct the address that the proxy passes requests to."
        )
    elif response.status_code != 200 or response.text != '{"status": "ok"}':
        yield failed(
            f"{url} is answered {response.status_code}, and not as Signpost does: BASE_URL or "
            "the proxy leads elsewhere."
        )
    else:
        yield ok(f"{url} answers.")


def _page(session: requests.Session) -> Iterator[Verdict]:
    path = settings.LOGIN_URL
    response, url = _get(session, path), settings.BASE_URL + path
    if urljoin(url, response.headers.get("Location")) == url and response.is_redirect:
        yield failed(
            f"{url} redirects to itself: behind a proxy that overwrites X-Forwarded-Proto "
            "set TRUST_X_FORWARDED_PROTO=true; otherwise have the proxy send it."
        )
        return
    yield _expected(response, url, is_right="csrfmiddlewaretoken" in response.text)


def _static(session: requests.Session) -> Iterator[Verdict]:
    path = staticfiles_storage.url("admin/css/base.css")
    response, url = _get(session, path), settings.BASE_URL + path
    media_type = response.headers.get("Content-Type", "").lower()
    is_css = media_type.startswith("text/css")
    yield _expected(response, url, is_right=is_css and bool(response.content))


def _api(session: requests.Session) -> Iterator[Verdict]:
    path, headers = "/v1/webhooks", {"Authorization": "Bearer doctor"}
    response, url = _get(session, path, headers=headers), f"{settings.BASE_URL}{path}"
    challenge = response.headers.get("WWW-Authenticate", "")
    if response.status_code == 401 and "invalid_token" not in challenge:
        yield failed(
            f"{url} received no Authorization header: let the proxy pass it on."
        )
    else:
        is_ours = response.text.startswith('{"error"')
        yield _expected(response, url, is_right=is_ours, status=401)


def _stream(session: requests.Session) -> Iterator[Verdict]:
    url = settings.BASE_URL + stream_probe.PATH
    with _get(session, stream_probe.address(), stream=True) as response:
        if response.status_code != 200:
            yield failed(
                f"{url} is answered {response.status_code}: give this command and the web "
                "servers the same SECRET_KEY, and serve with `manage.py web`."
            )
            return
        lines = response.iter_lines(chunk_size=1)
        seen = orjson.loads(next(lines, b""))
        if not isinstance(seen, dict):
            raise requests.exceptions.InvalidJSONError
        began = time.monotonic()
        is_piecewise = [*lines] and time.monotonic() - began > stream_probe.PAUSE_S / 2
    if is_piecewise:
        yield ok(f"{url} arrives piece by piece.")
    else:
        yield failed(
            f"{url} arrives in one piece: switch off buffering in the proxy "
            "(nginx: `proxy_buffering off`)."
        )
    if seen.get("x_forwarded_proto") and not seen.get("is_trusted"):
        yield warning(
            "X-Forwarded-Proto arrives and is not trusted: when the proxy overwrites it, set "
            "TRUST_X_FORWARDED_PROTO=true; otherwise have the proxy remove it."
        )


def _expected(
    response: requests.Response, url: str, *, is_right: bool, status: int = 200
) -> Verdict:
    if response.status_code == status and is_right:
        return ok(f"{url} answers.")
    return failed(
        f"{url} is answered {response.status_code}, and not as Signpost does: the proxy "
        "replaces or misses it."
    )


PROBES: dict[str, Callable[[requests.Session], Iterator[Verdict]]] = {
    "address": _address,
    "page": _page,
    "static file": _static,
    "API": _api,
    "stream": _stream,
}
