"""The parameters of an OAuth request, read strictly before the toolkit sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, QueryDict
from django.http.request import UnreadablePostError
from oauthlib.oauth2 import InvalidScopeError

from recording.oauth import metadata
from recording.oauth.errors import OAuthError
from webhooks_core.web.parsers import is_over

MAX_BODY = 65_536
MAX_VALUE = 4096
FORM = "application/x-www-form-urlencoded"
NAMES = frozenset(
    {"client_id", "client_secret", "code", "code_challenge", "code_challenge_method"}
    | {"code_verifier", "grant_type", "redirect_uri", "refresh_token", "response_type"}
    | {"scope", "state", "token", "token_type_hint"}
)
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Parameters:
    """The known parameters of one request, each at most once; `resource` may repeat."""

    values: dict[str, str]
    resources: tuple[str, ...] = ()

    def get(self, name: str) -> str:
        """Return a value, or "" when the parameter is missing."""
        return self.values.get(name, "")

    def require(self, *names: str) -> None:
        """Raise OAuthError for the first of these that is missing."""
        for name in names:
            if not self.get(name):
                raise OAuthError(f"Missing {name} parameter.")

    def check_target(self) -> None:
        """Raise InvalidScopeError, or OAuthError for the resource of another server (RFC 8707)."""
        if not set(self.get("scope").split()) <= {metadata.SCOPE}:
            raise InvalidScopeError(f"The only scope is {metadata.SCOPE}.")
        if not all(map(metadata.is_ours, self.resources)):
            text = "The resource is not one of this server."
            raise OAuthError(text, "invalid_target")

    def pairs(self) -> list[tuple[str, str]]:
        """Return what oauthlib gets; a scope that is missing or repeated is the only one."""
        return [*(self.values | {"scope": metadata.SCOPE}).items()]


def read(encoded: bytes) -> Parameters:
    """Return the known parameters; unknown ones are ignored (RFC 6749 section 3.1).

    Raises OAuthError for one that is repeated, too long or has control characters.
    """
    try:
        source = QueryDict(encoded, encoding="utf-8")
    except TooManyFieldsSent as error:
        raise OAuthError("Too many parameters.") from error
    values = {}
    for name in NAMES & source.keys():
        value, *others = source.getlist(name)
        if others:
            raise OAuthError(f"Duplicate {name} parameter.")
        if _checked(name, value):
            values[name] = value
    resources = source.getlist("resource")
    return Parameters(
        values, tuple(uri for uri in resources if _checked("resource", uri))
    )


def _checked(name: str, value: str) -> str:
    if len(value) > MAX_VALUE:
        raise OAuthError(f"The {name} parameter is too long.")
    if CONTROL.search(value):
        raise OAuthError(f"The {name} parameter holds control characters.")
    return value


def body_of(request: HttpRequest) -> bytes:
    """Return the body, of at most 64 KiB. Raises OAuthError."""
    try:
        is_large = is_over(str(request.META.get("CONTENT_LENGTH") or ""), MAX_BODY)
        body = b"" if is_large else request.body
    except UnreadablePostError as error:
        raise OAuthError("The body ended early.") from error
    if is_large or len(body) > MAX_BODY:
        raise OAuthError("The body is larger than 64 KiB.", status=413)
    return body


def read_query(request: HttpRequest) -> Parameters:
    """Return the parameters of the address. Raises OAuthError."""
    return read(request.META.get("QUERY_STRING", "").encode("latin-1"))


def read_form(request: HttpRequest) -> Parameters:
    """Return the parameters of a form body. Raises OAuthError.

    A request with any query is refused, so that its developer notices: secrets in an address end
    up in logs.
    """
    if request.META.get("QUERY_STRING"):
        raise OAuthError("Parameters belong in the body, not in the address.")
    if request.content_type != FORM:
        raise OAuthError(f"The body must be {FORM}.")
    return read(body_of(request))
