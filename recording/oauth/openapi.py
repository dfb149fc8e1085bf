"""The OAuth part of the OpenAPI document: its endpoints are plain Django views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recording.oauth import client_names, errors, metadata
from recording.oauth.clients import GRANT_TYPES, MAX_REDIRECTS, RESPONSE_TYPES, SCOPE
from recording.oauth.metadata import AUTH_METHODS, RESOURCE_METADATA
from recording.oauth.parameters import FORM
from recording.oauth.views.api import UnknownResourceError
from webhooks_core.web.json_schema import (
    BOOLEAN,
    INTEGER,
    STRING,
    URI,
    add_operations,
    array_of,
    body,
    described,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)

BASE = "https://signpost.example"
CLIENT_ID = "pVs5Lw3mT0c8Xn2Rb7Yk1Qz9Jd4Hf6GaUe"
REDIRECT = "http://127.0.0.1:8765/callback"  # allowed on every instance
SCOPES = one_of(SCOPE)
SERVER = metadata.authorization_server(BASE)
RESOURCE = metadata.protected_resource(BASE, "/v1/webhooks")
# By the names of both metadata documents, whose values are the examples.
METADATA_TEXTS = {
    "issuer": "The address of this server.",
    "authorization_endpoint": "Where the browser goes for consent.",
    "token_endpoint": "Where codes and refresh tokens are traded.",
    "registration_endpoint": "Where applications register.",
    "response_types_supported": "The response types.",
    "response_modes_supported": "How the code comes back.",
    "grant_types_supported": "The grants.",
    "code_challenge_methods_supported": "The methods of PKCE.",
    "client_id_metadata_document_supported": (
        "Whether a client id may be the address of a document."
    ),
    "token_endpoint_auth_methods_supported": (
        "How clients authenticate at the token endpoint."
    ),
    "revocation_endpoint": "Where connections end.",
    "revocation_endpoint_auth_methods_supported": "How clients authenticate there.",
    "authorization_response_iss_parameter_supported": (
        "Whether the redirect names the issuer (RFC 9207)."
    ),
    "service_documentation": "A page for developers.",
    "resource": "The address that tokens are for.",
    "authorization_servers": "Whose tokens it accepts.",
    "scopes_supported": "The scopes.",
    "bearer_methods_supported": "Where a request holds its token.",
    "resource_name": "A name for people.",
    "resource_documentation": "A page for developers.",
}


def _schema_of(document: Mapping[str, Any], **texts: str) -> dict[str, Any]:
    """Return the schema of a metadata document; `texts` are for this one alone."""
    texts = METADATA_TEXTS | texts
    return object_of(
        **{
            name: described(texts[name], _type_of(value))
            for name, value in document.items()
        }
    )


def _type_of(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return array_of(_type_of(value[0]))
    if isinstance(value, bool):
        return BOOLEAN
    return URI if value.startswith(BASE) else STRING


CREDENTIALS = {
    "client_id": described("The id from the registration."),
    "client_secret": described("Of a client that registered `client_secret_post`."),
}
REGISTRATION = {
    "client_name": described(
        "The name on the consent page.", STRING | {"maxLength": client_names.MAX_LENGTH}
    ),
    "token_endpoint_auth_method": described(
        "How it authenticates; `none` for a public client.", one_of(*AUTH_METHODS)
    ),
    "grant_types": described(
        "The grants that it uses.", array_of(one_of(*GRANT_TYPES))
    ),
    "response_types": described(
        "The only one is `code`.", array_of(one_of(*RESPONSE_TYPES))
    ),
    "scope": described("The only scope.", SCOPES),
    "redirect_uris": described(
        "Where the browser may be sent back.",
        array_of(URI) | {"minItems": 1, "maxItems": MAX_REDIRECTS},
    ),
}
SCHEMAS = {
    "OAuthError": object_of(
        error=described("A code of RFC 6749, RFC 7591 or RFC 8707."),
        error_description=described("What is wrong, for people."),
    ),
    "OAuthServer": _schema_of(SERVER),
    "OAuthResource": _schema_of(
        RESOURCE, scopes_supported="The scopes that it asks for."
    ),
    "OAuthClient": object_of(
        [
            *("client_id", "client_id_issued_at", "redirect_uris", "scope"),
            *("token_endpoint_auth_method", "grant_types", "response_types"),
        ],
        client_id=described("The id for later requests."),
        client_id_issued_at=described("Unix time in seconds.", INTEGER),
        client_secret=described("Only of a confidential client. Shown only here."),
        client_secret_expires_at=described("It does not expire.", {"const": 0}),
        **REGISTRATION,
    ),
    "OAuthToken": object_of(
        access_token=described("For the header `Authorization: Bearer …`."),
        token_type=described("Always `Bearer`.", {"const": "Bearer"}),
        expires_in=described("Seconds until the access token ends.", INTEGER),
        refresh_token=described("For a new pair; each rotation replaces it."),
        scope=described("The scope of the access token.", SCOPES),
        email=described("Of the account, or empty. Do not use it for authorization."),
    ),
}
REGISTRATION_EXAMPLE = {
    "client_name": "Minutes",
    "redirect_uris": [REDIRECT],
    "token_endpoint_auth_method": "none",
}
CLIENT_EXAMPLE = REGISTRATION_EXAMPLE | {
    "client_id": CLIENT_ID,
    "client_id_issued_at": 1_795_231_200,
    "grant_types": GRANT_TYPES,
    "response_types": RESPONSE_TYPES,
    "scope": SCOPE,
}
CODE_EXAMPLE = {
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
    "email": "ada@example.org",
}


def _json(name: str, example: Any) -> dict[str, Any]:
    return body(ref(name), {"example": example})


def _page(description: str) -> dict[str, Any]:
    return body(STRING, media_type="text/html", description=description)


def _form(example: Any = None, **fields: Any) -> dict[str, Any]:
    examples = {"example": example} if example else None
    return body(object_of([], **fields), examples, media_type=FORM, required=True)


def _errors(*kinds: type[errors.OAuthError]) -> dict[int, Any]:
    return {
        kind.status_code: {"description": kind.description}
        | _json(
            "OAuthError",
            {"error": kind.error, "error_description": kind.description},
        )
        for kind in kinds
    }


GET_ERRORS = _errors(errors.ServerError, errors.UnavailableError)
POST_ERRORS = GET_ERRORS | _errors(
    errors.InvalidRequestError,
    errors.PayloadTooLargeError,
    errors.EncodedBodyError,
    errors.TooManyRequestsError,
)
CLIENT_ERRORS = POST_ERRORS | _errors(errors.InvalidClientError)
PAGES = {
    302: {"description": "To the login, and back here afterwards."},
    303: {"description": "To the application: a code, or an error of RFC 6749."},
    400: _page("Nobody is sent to an address that was not registered."),
    429: _page(errors.TooManyRequestsError.description),
    500: _page(errors.ServerError.description),
    503: _page(errors.UnavailableError.description),
}
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
CHALLENGE_TEXT = "SHA-256 of the verifier in base64url (RFC 7636)."
REDIRECT_TEXT = "Exactly as registered; a loopback port may differ."
RESOURCE_TEXT = "What the token is for (RFC 8707)."
AUTHORIZE_PARAMETERS = [
    parameter(name, text, schema, example=example)
    | {"required": name not in {"scope", "state", "resource"}}
    for name, text, schema, example in (
        ("response_type", "Always `code`.", {"const": "code"}, "code"),
        ("client_id", "The id, or the address of a document.", STRING, CLIENT_ID),
        ("redirect_uri", REDIRECT_TEXT, URI, REDIRECT),
        ("code_challenge", CHALLENGE_TEXT, STRING, CHALLENGE),
        ("code_challenge_method", "Always `S256`.", {"const": "S256"}, "S256"),
        ("scope", "The only scope; it is the default.", SCOPES, SCOPE),
        ("state", "Comes back unchanged.", STRING, "xyz"),
        ("resource", RESOURCE_TEXT, URI, f"{BASE}/v1/webhooks"),
    )
]


def _operation(
    name: str,
    summary: str,
    response: dict[str, Any],
    failures: Mapping[int, Any],
    *,
    status: int = 200,
    **fields: Any,
) -> dict[str, Any]:
    responses = {**failures, status: {"description": summary} | response}
    return operation(f"oauth_{name}", summary, responses, tags=["OAuth"], **fields)


# A public client identifies itself in the body only.
AUTHENTICATED: list[dict[str, list[str]]] = [{"oauthClient": []}, {}]
OPERATIONS = {
    ("get", "/.well-known/oauth-authorization-server"): _operation(
        "server",
        "Where and how applications connect (RFC 8414)",
        _json("OAuthServer", SERVER),
        GET_ERRORS,
    ),
    ("get", RESOURCE_METADATA): _operation(
        "resource",
        "Which server's tokens the recording API takes (RFC 9728)",
        _json("OAuthResource", RESOURCE),
        GET_ERRORS,
    ),
    ("get", f"{RESOURCE_METADATA}/{{path}}"): _operation(
        "resource_at",
        "The same for an address of the recording API",
        _json("OAuthResource", RESOURCE),
        GET_ERRORS | _errors(UnknownResourceError),
        parameters=[
            parameter("path", "The path of a protected address.", example="mcp")
            | {"in": "path"}
        ],
    ),
    ("post", "/oauth/register"): _operation(
        "register",
        "Register an application (RFC 7591)",
        _json("OAuthClient", CLIENT_EXAMPLE),
        POST_ERRORS,
        status=201,
        requestBody=body(
            object_of(["redirect_uris"], **REGISTRATION),
            {"example": REGISTRATION_EXAMPLE},
            required=True,
        ),
    ),
    ("get", "/oauth/authorize"): _operation(
        "authorize",
        "The page on which an account allows or denies an application",
        _page("The page."),
        PAGES,
        parameters=AUTHORIZE_PARAMETERS,
    ),
    ("post", "/oauth/authorize"): _operation(
        "decide",
        "The decision, sent by that page's form alone",
        _page("The form is not this session's (CSRF)."),
        PAGES,
        status=403,
        parameters=AUTHORIZE_PARAMETERS,
        requestBody=_form(
            allow=described("Present when the account allows it."),
            deny=described("Present when the account denies it."),
            csrfmiddlewaretoken=described("From the form of the page."),
        ),
    ),
    ("post", "/oauth/token"): _operation(
        "token",
        "Trade a code or a refresh token for a pair of tokens (RFC 6749)",
        _json("OAuthToken", TOKEN_EXAMPLE),
        CLIENT_ERRORS,
        requestBody=_form(
            CODE_EXAMPLE,
            grant_type=described("What is traded.", one_of(*GRANT_TYPES)),
            code=described("The code of the redirect; a minute, once."),
            redirect_uri=described("As in the authorization."),
            code_verifier=described("43 to 128 characters (RFC 7636)."),
            refresh_token=described("Of the grant `refresh_token`."),
            resource=described(RESOURCE_TEXT),
            scope=described("The only scope.", SCOPES),
            **CREDENTIALS,
        ),
        security=AUTHENTICATED,
    ),
    ("post", "/oauth/revoke"): _operation(
        "revoke",
        "End the connection that a token belongs to (RFC 7009)",
        {"description": "It is ended, or never was."},
        CLIENT_ERRORS,
        requestBody=_form(
            {"token": "either token of the pair", "client_id": CLIENT_ID},
            token=described("The access or the refresh token."),
            token_type_hint=described("Not needed."),
            **CREDENTIALS,
        ),
        security=AUTHENTICATED,
    ),
}


def add_oauth(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put the OAuth endpoints into the document (a drf-spectacular hook)."""
    result["components"]["securitySchemes"]["oauthClient"] = {
        "type": "http",
        "scheme": "basic",
        "description": "A confidential client's id and secret, each form-encoded first.",
    }
    return add_operations(result, OPERATIONS, SCHEMAS)
