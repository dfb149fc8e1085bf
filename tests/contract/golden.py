"""What clients see: each route, method, identity and body, and the exact response.

`python -m pytest tests/contract --write-golden` records again. Read the difference before
committing it: each changed line is a change that clients see.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import NamedTuple

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO")
WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
NO_BODY = ("", "")
BAD_BODIES = {
    "no body": NO_BODY,
    "malformed": ('{"url"', JSON),
    "array": ("[]", JSON),
    "text": ("hello", "text/plain"),
    "form": ("url=x", FORM),
}
# What a method or a caller that is refused anyway sends: no answer of theirs depends on more.
UNREAD_BODIES = {name: BAD_BODIES[name] for name in ("no body", "malformed")}
READING = frozenset({"POST", "PATCH"})
MOST_SHOWN = 2_000
# Of every page and most APIs; their values have tests of their own.
SECURITY = {
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
}


class Route(NamedTuple):
    """One address; `path` may hold names of what exists, such as `{endpoint}`.

    Of the identities only the `readers` get as far as a body; without readers all do.
    """

    path: str
    identities: tuple[str, ...] = ("nobody",)
    bodies: Mapping[str, tuple[str, str]] = {}
    shows_body: bool = True
    readers: frozenset[str] = frozenset()

    def cases(self) -> Iterator["Case"]:
        for method, identity in product(METHODS, self.identities):
            for name, (body, kind) in self._bodies(method, identity).items():
                yield Case(self, method, identity, name, body, kind)

    def _bodies(self, method: str, identity: str) -> Mapping[str, tuple[str, str]]:
        if method not in WITH_BODY:
            return {"no body": NO_BODY}
        if method in READING and (not self.readers or identity in self.readers):
            return {**BAD_BODIES, **self.bodies}
        return UNREAD_BODIES


class Case(NamedTuple):
    """One request."""

    route: Route
    method: str
    identity: str
    body_name: str
    body: str
    content_type: str


class Response(NamedTuple):
    """A response as it left the application."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes


_VARIABLE = (
    (re.compile(r"\bmsg_[0-9a-f]{24}\b"), "msg_ID"),
    (re.compile(r"\b(ep|dlv|evt|evt_sample|whsub|doc|prt)_[0-9a-v]{26}\b"), r"\1_ID"),
    (re.compile(r"\bgw_portal_\w{36}\b"), "gw_portal_TOKEN"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/]{43}="), "whsec_SECRET"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "TIME"),
    (re.compile(r'("client_id(?:_issued_at)?":\s*)("[^"]+"|\d+)'), r"\1CLIENT"),
    (re.compile(r'("client_secret":\s*)"[^"]+"'), r"\1SECRET"),
    (re.compile(r'("(?:created|id|trace_id)":\s*)("[0-9a-zA-Z-]{16,}"|\d+)'), r"\1ANY"),
    (re.compile(r"csrftoken=[^;]+"), "csrftoken=TOKEN"),
    (re.compile(r"(?i)expires=[^;]+"), "expires=TIME"),
)


def normalised(text: str) -> str:
    """Return a text without what differs from run to run: ids, secrets, times."""
    for pattern, replacement in _VARIABLE:
        text = pattern.sub(replacement, text)
    return text


def shown(route: Route, response: Response) -> str:
    """Return a response as the golden file holds it."""
    left_out = SECURITY if route.shows_body else SECURITY | {"Content-Length", "ETag"}
    headers = sorted(
        f"  {name}: {value}" for name, value in response.headers if name not in left_out
    )
    security = {name: value for name, value in response.headers if name in SECURITY}
    if security:
        headers.append(f"  (security headers {_digest(_canonical(security))})")
    body = normalised(response.body.decode("utf-8", "backslashreplace"))
    if not route.shows_body or len(body) > MOST_SHOWN:
        body = f"sha256 {_digest(body)}" if route.shows_body else "…"
    lines = [str(response.status), *map(normalised, headers), *_indented(body)]
    return "\n".join(lines)


def _canonical(headers: Mapping[str, str]) -> str:
    """Return headers as one text; the directives of a policy have no order."""
    parts = {
        name: "; ".join(sorted(part.strip() for part in value.split(";")))
        for name, value in headers.items()
    }
    return str(sorted(parts.items()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _indented(body: str) -> list[str]:
    return [f"  | {line}" for line in body.splitlines()]


# What an error or an object says of itself first.
_SAID = re.compile(r'"(?:message|detail|error_description)":\s*"([^"]+)"')


@dataclass
class Record:
    """Responses, each written down once, and the cases that get them."""

    responses: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def add(self, route: Route, send: Callable[[Case], Response]) -> None:
        """Send every case of a route. Cases of a method that agree share one line."""
        self.lines.append(f"\n{route.path}")
        for method, cases in groupby(route.cases(), lambda case: case.method):
            groups: dict[str, list[Case]] = {}
            for case in (sent := list(cases)):
                groups.setdefault(self._name(shown(route, send(case))), []).append(case)
            for name, group in groups.items():
                self.lines.append(f"  {method} {name}: {_summary(group, sent)}")

    def _name(self, response: str) -> str:
        # By content, so that a new response renames no other.
        status = response.partition("\n")[0]
        said = _SAID.search(response)
        words = re.sub(r"\W+", "-", said[1])[:40].strip("-").lower() if said else ""
        name = "-".join(filter(None, (status, words, _digest(response)[:4])))
        assert self.responses.setdefault(name, response) == response
        return name

    def text(self) -> str:
        parts = [f"{name}: {text}" for name, text in sorted(self.responses.items())]
        return "\n".join(self.lines).lstrip() + "\n\n" + "\n\n".join(parts) + "\n"


def _summary(group: Sequence[Case], sent: Sequence[Case]) -> str:
    """Return `identity/body` of each case, with `*` for all bodies or for everybody."""
    if len(group) == len(sent):
        return "*"
    names = []
    for identity, cases in groupby(group, lambda case: case.identity):
        bodies = [case.body_name for case in cases]
        is_all = len(bodies) == sum(case.identity == identity for case in sent)
        names.append(f"{identity}/{'*' if is_all else ' '.join(bodies)}")
    return ", ".join(names)
