"""Authenticate `Authorization: Bearer <token>`, which is for exactly one account."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AbstractUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.request import Request

from recording import tokens
from recording.errors import UnauthorizedError
from recording.oauth import access
from recording.oauth.metadata import challenge

TokenChecker = Callable[[str], AbstractUser | None]

# In this order; the first that knows a token decides.
TOKEN_CHECKERS: tuple[TokenChecker, ...] = (tokens.authenticate, access.authenticate)

CREDENTIALS = re.compile(rb"bearer +([!-~]{1,4096}) *", re.IGNORECASE)


def owner_of(token: str) -> AbstractUser | None:
    """Return the account of a valid bearer token, whatever its kind."""
    for check in TOKEN_CHECKERS:
        if user := check(token):
            return user
    return None


class BearerAuthentication(BaseAuthentication):
    """Refuses every request without a valid bearer token."""

    def authenticate(self, request: Request) -> tuple[AbstractUser, str]:
        header = get_authorization_header(request)
        match = CREDENTIALS.fullmatch(header)
        if match is None:
            raise UnauthorizedError(
                "Send an access token: Authorization: Bearer <access_token>.",
                headers={"WWW-Authenticate": challenge(request.path)},
            )
        user = owner_of(match[1].decode())
        if user is None or not user.is_active:
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


def refused(path: str) -> UnauthorizedError:
    """Return the error for a token that is not valid, or no longer."""
    return UnauthorizedError(
        "The access token is not valid.",
        headers={"WWW-Authenticate": challenge(path, is_refused=True)},
    )
