"""What clients are told: the authorization server (RFC 8414), the protected resource (RFC 9728)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

SCOPE = "mcp:connect"
GRANT_TYPES = ["authorization_code", "refresh_token"]
RESPONSE_TYPES = ["code"]
AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
# One resource server has these addresses; a token for one of them is good at all.
RESOURCE_PATHS = ("", "/", "/mcp")


def is_ours(resource: str) -> bool:
    """Return True if a resource indicator (RFC 8707) names this server."""
    return resource in {f"{settings.BASE_URL}{path}" for path in RESOURCE_PATHS}


def authorization_server() -> dict[str, Any]:
    """Return the metadata of RFC 8414 section 2."""
    base = settings.BASE_URL
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "scopes_supported": [SCOPE],
        "response_types_supported": RESPONSE_TYPES,
        "response_modes_supported": ["query"],
        "grant_types_supported": GRANT_TYPES,
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": bool(settings.OAUTH_CIMD_HOSTS),
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint": f"{base}/oauth/revoke",
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{base}/docs",
    }


def protected_resource(path: str) -> dict[str, Any]:
    """Return the metadata of RFC 9728 section 2 for one of RESOURCE_PATHS."""
    base = settings.BASE_URL
    return {
        "resource": f"{base}{path}",
        "authorization_servers": [base],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
        "resource_name": "Signpost recording",
        "resource_documentation": f"{base}/docs",
    }


def challenge_parameters(path: str) -> dict[str, str]:
    """Return the parameters of a 401 that lead to this metadata (RFC 9728 section 5.1)."""
    suffix = path if path == "/mcp" else ""
    address = f"{settings.BASE_URL}{RESOURCE_METADATA}{suffix}"
    return {"resource_metadata": address, "scope": SCOPE}
