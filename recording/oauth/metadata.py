"""Metadata for clients: authorization server (RFC 8414), protected resource (RFC 9728)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from recording.oauth import resources
from recording.oauth.clients import GRANT_TYPES, RESPONSE_TYPES, SCOPE
from recording.oauth.models import AuthMethod

AUTH_METHODS = [AuthMethod.BASIC.value, AuthMethod.POST.value, AuthMethod.NONE.value]
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"


def authorization_server(base: str) -> dict[str, Any]:
    """Return the metadata of RFC 8414 section 2 for an origin."""
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


def protected_resource(base: str, path: str) -> dict[str, Any]:
    """Return the metadata of RFC 9728 section 2 for a path of the API."""
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
    suffix = path if resources.is_protected_path(path) else ""
    return {
        "resource_metadata": f"{settings.BASE_URL}{RESOURCE_METADATA}{suffix}",
        "scope": SCOPE,
    }
