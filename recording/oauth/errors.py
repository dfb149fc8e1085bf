"""The errors of the OAuth endpoints: a top-level `error`, one class per code of the RFCs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from recording import cors
from webhooks_core.api.exception_mapping import failure_of


def respond(
    body: dict[str, Any] | None = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """Answer with JSON that nobody may keep (RFC 6749 section 5.1); None is an empty body."""
    headers = {"Cache-Control": "no-store"} | (headers or {})
    if body is None:
        return HttpResponse(b"", status=status, headers=headers)
    return JsonResponse(body, status=status, headers=headers)


class OAuthError(Exception):
    """An answer of RFC 6749 section 5.2: `error`, `error_description`."""

    status = 400
    code = "invalid_request"
    description = "The request is malformed."

    def __init__(self, description: str = "", *, retry_after: int = 0) -> None:
        self.description = description or self.description
        self.retry_after = retry_after
        super().__init__(self.description)

    @property
    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after)} if self.retry_after else {}

    def response(self) -> HttpResponse:
        """Return the error as JSON."""
        body = {"error": self.code, "error_description": self.description}
        return respond(body, status=self.status, headers=self.headers)


def response_for(
    _request: HttpRequest, status: int, exception: BaseException | None
) -> HttpResponse:
    """Return what no view of ours answers: an unknown address, a request that Django refused."""
    failure = failure_of(exception)
    if failure and failure.status == UnavailableError.status:
        return cors.with_cors(UnavailableError(retry_after=5).response())
    fits = {404: UnknownAddressError, 500: ServerError}
    return cors.with_cors(fits.get(status, InvalidRequestError)().response())


class UnknownAddressError(OAuthError):
    """There is nothing at this address."""

    status = 404
    description = "There is nothing at this address."


class InvalidRequestError(OAuthError):
    """A parameter is missing, repeated or malformed."""


class PayloadTooLargeError(OAuthError):
    """The body is larger than 64 KiB."""

    status = 413
    description = "The body is larger than 64 KiB."


class EncodedBodyError(OAuthError):
    """The body has a Content-Encoding."""

    status = 415
    description = "Send the body as it is, without Content-Encoding."

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept-Encoding": "identity"}


class InvalidScopeError(OAuthError):
    """Another scope than ours (RFC 6749 section 4.1.2.1)."""

    code = "invalid_scope"
    description = "The only scope is mcp:connect."


class InvalidTargetError(OAuthError):
    """A resource of somebody else (RFC 8707 section 2)."""

    code = "invalid_target"
    description = "The resource is not one of this server."


class InvalidClientError(OAuthError):
    """Client authentication failed; the challenge is that of RFC 6749 section 5.2."""

    status = 401
    code = "invalid_client"
    description = "Unknown client, or wrong client authentication."

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"'}


class InvalidClientMetadataError(OAuthError):
    """A registration that cannot be served (RFC 7591 section 3.2.2)."""

    code = "invalid_client_metadata"


class InvalidRedirectUriError(OAuthError):
    """A registration with an address that the policy refuses (RFC 7591 section 3.2.2)."""

    code = "invalid_redirect_uri"


class MethodNotAllowedError(OAuthError):
    """The endpoint exists, but not for this method."""

    status = 405

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(f"Use {' or '.join(methods)}.")
        self.methods = methods

    @property
    def headers(self) -> dict[str, str]:
        return {"Allow": ", ".join(self.methods)}


class TooManyRequestsError(OAuthError):
    """More requests, or more registrations, than one address may make."""

    status = 429
    code = "temporarily_unavailable"
    description = "Too many requests from this address."


class UnavailableError(OAuthError):
    """The database or the cache is away."""

    status = 503
    code = "temporarily_unavailable"
    description = "A needed service is away; try again."


class ServerError(OAuthError):
    """Something that was not foreseen; the log has the details."""

    status = 500
    code = "server_error"
    description = "The server failed; try again."
