"""The OAuth part of the OpenAPI document: its endpoints are plain Django views."""

from __future__ import annotations

from typing import Any

from recording.oauth import client_names, errors, metadata
from recording.oauth.clients import GRANT_TYPES, MAX_REDIRECTS, RESPONSE_TYPES, SCOPE
from recording.oauth.metadata import AUTH_METHODS
from recording.oauth.parameters import FORM
from recording.oauth.views.api import UnknownResourceError
from webhooks_core.web.json_schema import (
    BOOLEAN,
    INTEGER,
    STRING,
    array_of,
    described,
    object_of,
    ref,
)

BASE = "https://signpost.example"
CLIENT_ID = "pVs5Lw3mT0c8Xn2Rb7Yk1Qz9Jd4Hf6GaUe"
REDIRECT = "http://127.0.0.1:8765/callback"  # allowed on every instance
URI = {"type": "string", "format": "uri"}
CODE, S256, BEARER = {"const": "code"}, {"const": "S256"}, {"const": "Bearer"}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*values]}


SCOPES, TEXTS = _one_of(SCOPE), array_of(STRING)
CREDENTIALS = {
    "client_id": described("The id from the registration."),
    "client_secret": described("Of a client that registered `client_secret_post`."),
}
METADATA = {
    "client_name": described("The name on the consent page.")
    | {"maxLength": client_names.MAX_LENGTH},
    "token_endpoint_auth_method": described(
        "How it authenticates; `none` for a public client.", _one_of(*AUTH_METHODS)
    ),
    "grant_types": described(
        "The grants that it uses.", array_of(_one_of(*GRANT_TYPES))
    ),
    "response_types": described(
        "The only one is `code`.", array_of(_one_of(*RESPONSE_TYPES))
    ),
    "scope": described("The only scope.", SCOPES),
    "redirect_uris": described("Where the browser may be sent back.", array_of(URI))
    | {"minItems": 1, "maxItems": MAX_REDIRECTS},
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "OAuthError": object_of(
        error=described("A code of RFC 6749, RFC 7591 or RFC 8707."),
        error_description=described("What is wrong, for people."),
    ),
    "OAuthServer": object_of(
        issuer=described("The address of this server.", URI),
        authorization_endpoint=described("Where the browser goes for consent.", URI),
        token_endpoint=described("Where codes and refresh tokens are traded.", URI),
        registration_endpoint=described("Where applications register.", URI),
        scopes_supported=described("The scopes.", TEXTS),
        response_types_supported=described("The response types.", TEXTS),
        response_modes_supported=described("How the code comes back.", TEXTS),
        grant_types_supported=described("The grants.", TEXTS),
        code_challenge_methods_supported=described("The methods of PKCE.", TEXTS),
        client_id_metadata_document_supported=described(
            "Whether a client id may be the address of a document.", BOOLEAN
        ),
        token_endpoint_auth_methods_supported=described(
            "How clients authenticate at the token endpoint.", TEXTS
        ),
        revocation_endpoint=described("Where connections end.", URI),
        revocation_endpoint_auth_methods_supported=described(
            "How clients authenticate there.", TEXTS
        ),
        authorization_response_iss_parameter_supported=described(
            "Whether the redirect names the issuer (RFC 9207).", BOOLEAN
        ),
        service_documentation=described("A page for developers.", URI),
    ),
    "OAuthResource": object_of(
        resource=described("The address that tokens are for.", URI),
        authorization_servers=described("Whose tokens it accepts.", array_of(URI)),
        scopes_supported=described("The scopes that it asks for.", TEXTS),
        bearer_methods_supported=described("Where a request holds its token.", TEXTS),
        resource_name=described("A name for people."),
        resource_documentation=described("A page for developers.", URI),
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
        **METADATA,
    ),
    "OAuthToken": object_of(
        access_token=described("For the header `Authorization: Bearer …`."),
        token_type=described("Always `Bearer`.", BEARER),
        expires_in=described("Seconds until the access token ends.", INTEGER),
        refresh_token=described("For a new pair; each rotation replaces it."),
        scope=described("The scope of the access token.", SCOPES),
        email=described(
            "Of the account, or empty. Do not use it for authorization.",
        ),
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


def _content(media_type: str, schema: Any, example: Any = None) -> dict[str, Any]:
    media = {"schema": schema}
    if example:
        media["examples"] = {"example": {"value": example}}
    return {"content": {media_type: media}}


def _json(name: str, example: Any) -> dict[str, Any]:
    return _content("application/json", ref(name), example)


def _page(description: str) -> dict[str, Any]:
    return {"description": description} | _content("text/html", STRING)


def _form(example: Any = None, **fields: Any) -> dict[str, Any]:
    return {"required": True} | _content(FORM, object_of([], **fields), example)


def _errors(*kinds: type[errors.OAuthError]) -> dict[str, Any]:
    return {
        str(kind.status_code): {"description": kind.description}
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
    "302": {"description": "To the login, and back here afterwards."},
    "303": {"description": "To the application: a code, or an error of RFC 6749."},
    "400": _page("Nobody is sent to an address that was not registered."),
    "429": _page(errors.TooManyRequestsError.description),
    "500": _page(errors.ServerError.description),
    "503": _page(errors.UnavailableError.description),
}
AUTHORIZE_PARAMETERS = [
    {
        "name": name,
        "in": "query",
        "required": name not in {"scope", "state", "resource"},
        "schema": schema,
        "example": example,
        "description": text,
    }
    for name, schema, example, text in (
        ("response_type", CODE, "code", "Always `code`."),
        ("client_id", STRING, CLIENT_ID, "The id, or the address of a document."),
        (
            "redirect_uri",
            URI,
            REDIRECT,
            "Exactly as registered; a loopback port may differ.",
        ),
        (
            "code_challenge",
            STRING,
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "SHA-256 of the verifier in base64url (RFC 7636).",
        ),
        ("code_challenge_method", S256, "S256", "Always `S256`."),
        ("scope", SCOPES, SCOPE, "The only scope; it is the default."),
        ("state", STRING, "xyz", "Comes back unchanged."),
        ("resource", URI, f"{BASE}/v1/webhooks", "What the token is for (RFC 8707)."),
    )
]


def _operation(
    name: str,
    summary: str,
    response: dict[str, Any],
    failures: dict[str, Any],
    *,
    status: str = "200",
    **fields: Any,
) -> dict[str, Any]:
    responses = failures | {status: {"description": summary} | response}
    return {
        "operationId": f"oauth_{name}",
        "summary": summary,
        "tags": ["OAuth"],
        "security": [{}],
        "responses": dict(sorted(responses.items())),
    } | fields


RESOURCE = _json("OAuthResource", metadata.protected_resource(BASE, "/v1/webhooks"))
# A public client identifies itself in the body only.
AUTHENTICATED: list[dict[str, list[str]]] = [{"oauthClient": []}, {}]
PATHS = {
    "/.well-known/oauth-authorization-server": {
        "get": _operation(
            "server",
            "Where and how applications connect (RFC 8414)",
            _json("OAuthServer", metadata.authorization_server(BASE)),
            GET_ERRORS,
        )
    },
    "/.well-known/oauth-protected-resource": {
        "get": _operation(
            "resource",
            "Which server's tokens the recording API takes (RFC 9728)",
            RESOURCE,
            GET_ERRORS,
        )
    },
    "/.well-known/oauth-protected-resource/{path}": {
        "get": _operation(
            "resource_at",
            "The same for an address of the recording API",
            RESOURCE,
            GET_ERRORS | _errors(UnknownResourceError),
            parameters=[
                {
                    "name": "path",
                    "in": "path",
                    "required": True,
                    "schema": STRING,
                    "description": "The path of a protected address.",
                    "example": "mcp",
                }
            ],
        )
    },
    "/oauth/register": {
        "post": _operation(
            "register",
            "Register an application (RFC 7591)",
            _json("OAuthClient", CLIENT_EXAMPLE),
            POST_ERRORS,
            status="201",
            requestBody={"required": True}
            | _content(
                "application/json",
                object_of(["redirect_uris"], **METADATA),
                REGISTRATION_EXAMPLE,
            ),
        )
    },
    "/oauth/authorize": {
        "get": _operation(
            "authorize",
            "The page on which an account allows or denies an application",
            _page("The page."),
            PAGES,
            parameters=AUTHORIZE_PARAMETERS,
        ),
        "post": _operation(
            "decide",
            "The decision, sent by that page's form alone",
            _page("The form is not this session's (CSRF)."),
            PAGES,
            status="403",
            parameters=AUTHORIZE_PARAMETERS,
            requestBody=_form(
                allow=described("Present when the account allows it."),
                deny=described("Present when the account denies it."),
                csrfmiddlewaretoken=described("From the form of the page."),
            ),
        ),
    },
    "/oauth/token": {
        "post": _operation(
            "token",
            "Trade a code or a refresh token for a pair of tokens (RFC 6749)",
            _json("OAuthToken", TOKEN_EXAMPLE),
            CLIENT_ERRORS,
            requestBody=_form(
                CODE_EXAMPLE,
                grant_type=described("What is traded.", _one_of(*GRANT_TYPES)),
                code=described("The code of the redirect; a minute, once."),
                redirect_uri=described("As in the authorization."),
                code_verifier=described("43 to 128 characters (RFC 7636)."),
                refresh_token=described("Of the grant `refresh_token`."),
                resource=described("What the token is for (RFC 8707)."),
                scope=described("The only scope.", SCOPES),
                **CREDENTIALS,
            ),
            security=AUTHENTICATED,
        )
    },
    "/oauth/revoke": {
        "post": _operation(
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
        )
    },
}


def add_oauth(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put the OAuth endpoints into the document (a drf-spectacular hook)."""
    components = result["components"]
    components["schemas"] = dict(sorted((components["schemas"] | SCHEMAS).items()))
    components["securitySchemes"]["oauthClient"] = {
        "type": "http",
        "scheme": "basic",
        "description": "A confidential client's id and secret, each form-encoded first.",
    }
    result["paths"] |= PATHS
    return result
