"""What the OpenAPI document says about OAuth, whose endpoints are plain views."""

from __future__ import annotations

from typing import Any

from recording.oauth import client_names, errors
from recording.oauth.clients import GRANT_TYPES, MAX_REDIRECTS, SCOPE
from recording.oauth.errors import OAuthError
from recording.oauth.metadata import AUTH_METHODS
from recording.oauth.parameters import FORM
from webhooks_core.api.json_schema import INTEGER, STRING, array_of, object_of, ref

TAG = "OAuth"
BASE = "https://signpost.example"
CLIENT_ID = "pVs5Lw3mT0c8Xn2Rb7Yk1Qz9Jd4Hf6GaUe"
REDIRECT = "https://app.example.com/callback"
SCOPE_FIELD = {"type": "string", "enum": [SCOPE]}
URI = {"type": "string", "format": "uri"}
URI_LIST = array_of(URI)

CLIENT = object_of(
    [],
    client_name=STRING | {"maxLength": client_names.MAX_LENGTH},
    token_endpoint_auth_method={"type": "string", "enum": AUTH_METHODS},
    grant_types=array_of({"type": "string", "enum": GRANT_TYPES}),
    response_types=array_of({"type": "string", "enum": ["code"]}),
    scope=SCOPE_FIELD,
    redirect_uris=URI_LIST | {"minItems": 1, "maxItems": MAX_REDIRECTS},
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "OAuthError": object_of(error=STRING, error_description=STRING),
    "OAuthServer": object_of(
        ["issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"],
        issuer=URI,
        authorization_endpoint=URI,
        token_endpoint=URI,
        registration_endpoint=URI,
        revocation_endpoint=URI,
        scopes_supported=array_of(STRING),
        grant_types_supported=array_of(STRING),
        code_challenge_methods_supported=array_of(STRING),
    ),
    "OAuthResource": object_of(
        resource=URI,
        authorization_servers=URI_LIST,
        scopes_supported=array_of(STRING),
        bearer_methods_supported=array_of(STRING),
        resource_name=STRING,
        resource_documentation=URI,
    ),
    "OAuthClient": object_of(
        [
            *("client_id", "client_id_issued_at", "redirect_uris", "scope"),
            *("token_endpoint_auth_method", "grant_types", "response_types"),
        ],
        client_id=STRING,
        client_id_issued_at=INTEGER,
        client_secret=STRING | {"description": "Shown only here."},
        client_secret_expires_at={"const": 0},
        **CLIENT["properties"],
    ),
    "OAuthToken": object_of(
        access_token=STRING,
        token_type={"const": "Bearer"},
        expires_in=INTEGER,
        refresh_token=STRING,
        scope=SCOPE_FIELD,
    ),
}
SERVER_EXAMPLE = {
    "issuer": BASE,
    "authorization_endpoint": f"{BASE}/oauth/authorize",
    "token_endpoint": f"{BASE}/oauth/token",
    "registration_endpoint": f"{BASE}/oauth/register",
}
RESOURCE_EXAMPLE = {
    "resource": f"{BASE}/v1/webhooks",
    "authorization_servers": [BASE],
    "scopes_supported": [SCOPE],
    "bearer_methods_supported": ["header"],
    "resource_name": "Signpost recording",
    "resource_documentation": f"{BASE}/docs",
}
REGISTRATION = {
    "client_name": "Minutes",
    "redirect_uris": [REDIRECT],
    "token_endpoint_auth_method": "none",
}
CLIENT_EXAMPLE = REGISTRATION | {
    "client_id": CLIENT_ID,
    "client_id_issued_at": 1_795_231_200,
    "grant_types": GRANT_TYPES,
    "response_types": ["code"],
    "scope": SCOPE,
}
GRANT = {
    "grant_type": "authorization_code",
    "code": "the code of the redirect",
    "redirect_uri": REDIRECT,
    "client_id": CLIENT_ID,
    "code_verifier": "43 to 128 letters, digits and -._~",
}
TOKEN_EXAMPLE = {
    "access_token": "an hour long",
    "token_type": "Bearer",
    "expires_in": 3600,
    "refresh_token": "90 days, anew with each rotation",
    "scope": SCOPE,
}
CREDENTIALS = {"client_id": STRING, "client_secret": STRING}
COMMON = (errors.ServerError(), errors.UnavailableError())
THROTTLED = (errors.TooManyRequestsError(),)
ASKED = (
    errors.InvalidRequestError(),
    errors.PayloadTooLargeError(),
    errors.EncodedBodyError(),
    *THROTTLED,
    *COMMON,
)
CLIENTS = (errors.InvalidClientError(), *ASKED)
# A public client names itself in the body alone.
AUTHENTICATED: list[dict[str, list[str]]] = [{"oauthClient": []}, {}]


def add_oauth(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put the OAuth endpoints into the document (a drf-spectacular hook)."""
    components = result["components"]
    components["schemas"] = dict(sorted((components["schemas"] | SCHEMAS).items()))
    components["securitySchemes"]["oauthClient"] = {
        "type": "http",
        "scheme": "basic",
        "description": "A confidential client's id and secret, each form-encoded first.",
    }
    result["paths"] |= {
        "/.well-known/oauth-authorization-server": {"get": _server()},
        "/.well-known/oauth-protected-resource": {"get": _resource()},
        "/.well-known/oauth-protected-resource/{path}": {"get": _resource_at()},
        "/oauth/register": {"post": _register()},
        "/oauth/authorize": {"get": _authorize(), "post": _decide()},
        "/oauth/token": {"post": _token()},
        "/oauth/revoke": {"post": _revoke()},
    }
    return result


def _operation(
    name: str,
    summary: str,
    *,
    answers: dict[str, Any],
    fails: tuple[OAuthError, ...] = COMMON,
    **more: Any,
) -> dict[str, Any]:
    failures = {str(error.status_code): _failure(error) for error in fails}
    return {
        "operationId": f"oauth_{name}",
        "summary": summary,
        "tags": [TAG],
        "security": [{}],
        "responses": dict(sorted((answers | failures).items())),
        **more,
    }


def _failure(error: OAuthError) -> dict[str, Any]:
    value = {"error": error.error, "error_description": error.description}
    return _answer(error.description, ref("OAuthError"), value)


def _answer(told: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"description": told, "content": _json(schema, example)}


def _json(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {
        "application/json": {
            "schema": schema,
            "examples": {"example": {"value": example}},
        }
    }


def _form(example: dict[str, str], **fields: Any) -> dict[str, Any]:
    media = {"schema": object_of([], **fields)}
    shown = {"examples": {"example": {"value": example}}} if example else {}
    return {"required": True, "content": {FORM: media | shown}}


def _server() -> dict[str, Any]:
    summary = "Where and how applications connect (RFC 8414)"
    answer = _answer(summary, ref("OAuthServer"), SERVER_EXAMPLE)
    return _operation("server", summary, answers={"200": answer})


def _resource() -> dict[str, Any]:
    summary = "Which server's tokens the recording API takes (RFC 9728)"
    answer = _answer(summary, ref("OAuthResource"), RESOURCE_EXAMPLE)
    return _operation("resource", summary, answers={"200": answer})


def _resource_at() -> dict[str, Any]:
    summary = "The same for an address of the recording API"
    path = {"name": "path", "in": "path", "required": True, "schema": STRING}
    missing = _answer(
        "There is no protected resource at this path.",
        ref("OAuthError"),
        {
            "error": "invalid_request",
            "error_description": "There is no protected resource at this path.",
        },
    )
    answer = _answer(summary, ref("OAuthResource"), RESOURCE_EXAMPLE)
    answers = {"200": answer, "404": missing}
    return _operation("resource_at", summary, answers=answers, parameters=[path])


def _register() -> dict[str, Any]:
    summary = "Register an application (RFC 7591)"
    shape = CLIENT | {"required": ["redirect_uris"]}
    return _operation(
        "register",
        summary,
        answers={"201": _answer(summary, ref("OAuthClient"), CLIENT_EXAMPLE)},
        fails=ASKED,
        requestBody={"required": True, "content": _json(shape, REGISTRATION)},
    )


def _page(told: str) -> dict[str, Any]:
    return {"description": told, "content": {"text/html": {"schema": STRING}}}


PAGES = {
    "302": {"description": "To the login, and back here afterwards."},
    "303": {"description": "To the application: a code, or an error of RFC 6749."},
    "400": _page("Nobody is sent to an address that was not registered."),
    "429": _page(errors.TooManyRequestsError.description),
    "500": _page(errors.ServerError.description),
    "503": _page(errors.UnavailableError.description),
}
ASKING = [
    {
        "name": name,
        "in": "query",
        "required": required,
        "schema": schema,
        "example": example,
    }
    for name, required, schema, example in (
        ("response_type", True, {"const": "code"}, "code"),
        ("client_id", True, STRING, CLIENT_ID),
        ("redirect_uri", True, URI, REDIRECT),
        ("code_challenge", True, STRING, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", True, {"const": "S256"}, "S256"),
        ("scope", False, SCOPE_FIELD, SCOPE),
        ("state", False, STRING, "xyz"),
        ("resource", False, URI, f"{BASE}/v1/webhooks"),
    )
]


def _authorize() -> dict[str, Any]:
    return _operation(
        "authorize",
        "The page on which an account allows or denies an application",
        answers={"200": _page("The page.")} | PAGES,
        fails=(),
        parameters=ASKING,
    )


def _decide() -> dict[str, Any]:
    return _operation(
        "decide",
        "The decision, sent by that page's form alone",
        answers={"403": _page("The form is not this session's (CSRF).")} | PAGES,
        fails=(),
        parameters=ASKING,
        requestBody=_form({}, allow=STRING, deny=STRING, csrfmiddlewaretoken=STRING),
    )


def _token() -> dict[str, Any]:
    summary = "Trade a code or a refresh token for a pair of tokens (RFC 6749)"
    names = (
        "code",
        "redirect_uri",
        "code_verifier",
        "refresh_token",
        "resource",
    )
    grant = {"grant_type": {"type": "string", "enum": GRANT_TYPES}}
    form = grant | dict.fromkeys(names, STRING) | {"scope": SCOPE_FIELD} | CREDENTIALS
    return _operation(
        "token",
        summary,
        answers={"200": _answer(summary, ref("OAuthToken"), TOKEN_EXAMPLE)},
        fails=CLIENTS,
        requestBody=_form(GRANT, **form),
        security=AUTHENTICATED,
    )


def _revoke() -> dict[str, Any]:
    form = {"token": STRING, "token_type_hint": STRING} | CREDENTIALS
    example = {"token": "either token of the pair", "client_id": CLIENT_ID}
    return _operation(
        "revoke",
        "End the connection that a token belongs to (RFC 7009)",
        answers={"200": {"description": "It is ended, or never was."}},
        fails=CLIENTS,
        requestBody=_form(example, **form),
        security=AUTHENTICATED,
    )
