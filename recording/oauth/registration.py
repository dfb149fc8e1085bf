"""Applications register themselves (RFC 7591); documents describe others with the same members."""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Self

import orjson
from django.conf import settings
from django.utils import timezone
from oauth2_provider.generators import generate_client_id

from recording.oauth import redirects
from recording.oauth.errors import OAuthError, too_many_requests
from recording.oauth.metadata import GRANT_TYPES, RESPONSE_TYPES, SCOPE
from recording.oauth.models import Application, AuthMethod

MAX_REDIRECTS = 10
MAX_NAME = 100
UNUSED_AFTER = timedelta(hours=1)
# Persian and Indian scripts need joiners between letters.
JOINER = re.compile("(?<=[LM])J(?=[LM])")


@dataclass(frozen=True)
class Metadata:
    """The checked metadata of a client."""

    redirect_uris: tuple[str, ...]
    name: str
    auth_method: AuthMethod
    grant_types: tuple[str, ...] = tuple(GRANT_TYPES)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Read a registration body; unknown members are ignored, null counts as absent.

        Grant and response types that are not supported are left out (RFC 7591 section 3.2.1).
        Raises OAuthError.
        """
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _invalid("The body is not JSON.") from error
        if not isinstance(document, dict):
            raise _invalid("The body is not a JSON object.")
        members = {name: value for name, value in document.items() if value is not None}
        grant_types = _supported(members, "grant_types", GRANT_TYPES)
        _supported(members, "response_types", RESPONSE_TYPES)
        if members.get("scope", SCOPE) not in (SCOPE, ""):
            raise _invalid(f"The only scope is {SCOPE}.")
        metadata = cls.of(members, auth_method=_auth_method(members))
        return replace(metadata, grant_types=grant_types)

    @classmethod
    def of(cls, members: dict[str, Any], *, auth_method: AuthMethod) -> Self:
        """Check addresses and name of a client that authenticates so. Raises OAuthError."""
        uris = members.get("redirect_uris")
        is_public = auth_method == AuthMethod.NONE
        name = _name(members.get("client_name", ""))
        return cls(_redirect_uris(uris, is_public_client=is_public), name, auth_method)


def _invalid(text: str) -> OAuthError:
    return OAuthError(text, "invalid_client_metadata")


def _supported(
    members: dict[str, Any], name: str, supported: list[str]
) -> tuple[str, ...]:
    """Return the values of a list that are supported, of which the first must be there."""
    values = members.get(name, supported)
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    kept = tuple(each for each in supported if is_list and each in values)
    if supported[0] not in kept:
        raise _invalid(
            f"{name} must be a list of {', '.join(supported)} with {supported[0]}."
        )
    return kept


def _redirect_uris(uris: object, *, is_public_client: bool) -> tuple[str, ...]:
    """Return the addresses that the policy allows, each once.

    Well-formed ones that the operator did not list are left out: real applications send those of
    all their editions. Raises OAuthError for any other, and when none is left.
    """
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECTS:
        text = f"redirect_uris must be a list of 1 to {MAX_REDIRECTS} addresses."
        raise OAuthError(text, "invalid_redirect_uri")
    listed = redirects.listed(tuple(settings.OAUTH_ALLOWED_REDIRECTS))
    allowed, refusals = {}, []
    for number, uri in enumerate(uris):
        try:
            redirects.check(uri, listed=listed, is_public_client=is_public_client)
            allowed[uri] = True
        except redirects.RedirectRefusedError as error:
            refusals.append(f"redirect_uris[{number}]: {error}")
            if not isinstance(error, redirects.RedirectNotListedError):
                raise OAuthError(refusals[-1], "invalid_redirect_uri") from error
    if not allowed:
        raise OAuthError(refusals[0], "invalid_redirect_uri")
    return tuple(allowed)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise _invalid("client_name must be a text.")
    if len(name) > MAX_NAME:
        raise _invalid(f"client_name is longer than {MAX_NAME} characters.")
    kinds = (
        "J" if each in "\u200c\u200d" else unicodedata.category(each)[0]
        for each in name
    )
    # Control and format characters can reverse the text around the name.
    if {"C", "J"} & {*JOINER.sub("", "".join(kinds))}:
        raise _invalid("client_name holds control characters.")
    return " ".join(name.split())


def _auth_method(members: dict[str, Any]) -> AuthMethod:
    method = members.get("token_endpoint_auth_method", AuthMethod.BASIC)
    if method not in AuthMethod.values:
        raise _invalid(
            f"token_endpoint_auth_method must be one of {', '.join(AuthMethod.values)}."
        )
    return AuthMethod(method)


def register(*, metadata: Metadata, address: str) -> tuple[Application, str]:
    """Store a new application; return it with its secret, which is empty for a public one.

    Raises OAuthError when this address has as many unused applications as it may have.
    """
    _check_cap(address)
    is_public = metadata.auth_method == AuthMethod.NONE
    secret = "" if is_public else secrets.token_hex(32)
    kinds = Application.CLIENT_PUBLIC, Application.CLIENT_CONFIDENTIAL
    application = Application.objects.create(
        client_id=generate_client_id(),
        client_secret=secret,
        hash_client_secret=not is_public,
        client_type=kinds[not is_public],
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        registration_source=Application.RegistrationSource.DCR,
        redirect_uris=" ".join(metadata.redirect_uris),
        name=metadata.name,
        token_endpoint_auth_method=metadata.auth_method,
        registered_address=address,
    )
    return application, secret


def _check_cap(address: str) -> None:
    """Near the cap of applications without a token, delete the older ones; at it, refuse.

    An application that an account has allowed does not count: the servers of a hosted client
    register one for each of their users, from a few addresses.
    """
    cap = settings.OAUTH_CLIENTS_PER_ADDRESS
    own = Application.objects.filter(
        registration_source=Application.RegistrationSource.DCR,
        registered_address=address,
    )
    now = timezone.now()
    if own.unused(since=now).count() < cap * 0.9:
        return
    own.unused(since=now - UNUSED_AFTER).delete()
    if own.unused(since=now).count() >= cap:
        raise too_many_requests(
            "This address has registered as many clients as it may.", retry_after=3600
        )


def registered(
    application: Application, secret: str, *, grant_types: Sequence[str]
) -> dict[str, Any]:
    """Return the response of RFC 7591 section 3.2.1, the only one with the secret."""
    document: dict[str, Any] = {
        "client_id": application.client_id,
        "client_id_issued_at": int(application.created.timestamp()),
        "redirect_uris": application.redirect_uris.split(),
        "token_endpoint_auth_method": application.token_endpoint_auth_method,
        "grant_types": grant_types,
        "response_types": RESPONSE_TYPES,
        "scope": SCOPE,
    }
    if application.name:
        document["client_name"] = application.name
    if secret:
        document |= {"client_secret": secret, "client_secret_expires_at": 0}
    return document
