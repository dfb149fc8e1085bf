"""Authenticate `Authorization: Bearer <token>`, which is for exactly one account."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import AbstractUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.request import Request

from recording import token_memory
from recording.accounts import personal_tokens
from recording.errors import UnauthorizedError
from recording.oauth import grants, metadata

CREDENTIALS = re.compile(rb"bearer +([!-~]{1,4096}) *", re.IGNORECASE)


def challenge(path: str, *, is_refused: bool = False) -> str:
    """Return the `WWW-Authenticate` of a 401 (RFC 6750 section 3).

    `is_refused` distinguishes an invalid token from a request without one.
    """
    values = {"realm": "signpost"} | ({"error": "invalid_token"} if is_refused else {})
    values |= metadata.challenge_parameters(path)
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in values.items())


def owner_of(token: str) -> AbstractUser | None:
    """Return the account of a valid bearer token, whatever its kind."""
    return token_memory.find(token, _look_up)


def _look_up(token: str) -> AbstractUser | None:
    return personal_tokens.authenticate(token) or grants.authenticate(token)


class BearerAuthentication(BaseAuthentication):
    """Refuses every request without a valid bearer token."""

    def authenticate(self, request: Request) -> tuple[AbstractUser, str]:
        header = get_authorization_header(request)
        match = CREDENTIALS.fullmatch(header)
        if match is None:
            raise missing(request.path)
        user = owner_of(match[1].decode())
        if user is None:
            raise refused(request.path)
        return user, "bearer"


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = BearerAuthentication
    name = "recordingBearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An OAuth access token or a personal API token.",
        }


def missing(path: str) -> UnauthorizedError:
    """Return the error for a request without a token."""
    return UnauthorizedError(
        "Send an access token: Authorization: Bearer <access_token>.",
        headers={"WWW-Authenticate": challenge(path)},
    )


def refused(path: str) -> UnauthorizedError:
    """Return the error for a token that is not valid, or no longer."""
    return UnauthorizedError(
        "The access token is not valid.",
        headers={"WWW-Authenticate": challenge(path, is_refused=True)},
    )
