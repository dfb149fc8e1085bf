"""Applications register themselves (RFC 7591); documents describe others with the same members."""

from __future__ import annotations

import re
import secrets
import unicodedata
from datetime import timedelta
from typing import Any

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


def register(body: bytes, *, address: str) -> dict[str, Any]:
    """Store a new application; return the response of RFC 7591 section 3.2.1 with its secret.

    Unknown members are ignored, null counts as absent. Grant and response types that are not
    supported are left out. Raises OAuthError, also when this address has as many unused
    applications as it may have.
    """
    members = _members(body)
    grant_types = _supported(members, "grant_types", GRANT_TYPES)
    _supported(members, "response_types", RESPONSE_TYPES)
    if members.get("scope", SCOPE) not in (SCOPE, ""):
        raise _invalid(f"The only scope is {SCOPE}.")
    method = members.get("token_endpoint_auth_method", AuthMethod.BASIC)
    if method not in AuthMethod.values:
        text = f"must be one of {', '.join(AuthMethod.values)}."
        raise _invalid(f"token_endpoint_auth_method {text}")
    described = description(members, is_public_client=method == AuthMethod.NONE)
    _check_cap(address)
    application, secret = _stored(described, method, address)
    document = {
        "client_id": application.client_id,
        "client_id_issued_at": int(application.created.timestamp()),
        **described,
        "token_endpoint_auth_method": method,
        "grant_types": grant_types,
        "response_types": RESPONSE_TYPES,
        "scope": SCOPE,
    }
    shown_once = {"client_secret": secret, "client_secret_expires_at": 0}
    return document | (shown_once if secret else {})


def description(members: dict[str, Any], *, is_public_client: bool) -> dict[str, Any]:
    """Return the addresses of a client and, if it has one, its name. Raises OAuthError."""
    uris = _redirect_uris(members.get("redirect_uris"), is_public_client)
    name = _name(members.get("client_name", ""))
    return {"redirect_uris": uris} | ({"client_name": name} if name else {})


def _stored(
    described: dict[str, Any], method: str, address: str
) -> tuple[Application, str]:
    """Return a new application and its secret, which is empty for a public one."""
    is_public = method == AuthMethod.NONE
    secret = "" if is_public else secrets.token_hex(32)
    kinds = Application.CLIENT_PUBLIC, Application.CLIENT_CONFIDENTIAL
    application = Application.objects.create(
        client_id=generate_client_id(),
        client_secret=secret,
        hash_client_secret=not is_public,
        client_type=kinds[not is_public],
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        registration_source=Application.RegistrationSource.DCR,
        redirect_uris=" ".join(described["redirect_uris"]),
        name=described.get("client_name", ""),
        token_endpoint_auth_method=method,
        registered_address=address,
    )
    return application, secret


def _members(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _invalid("The body is not JSON.") from error
    if not isinstance(document, dict):
        raise _invalid("The body is not a JSON object.")
    return {name: value for name, value in document.items() if value is not None}


def _invalid(text: str) -> OAuthError:
    return OAuthError(text, "invalid_client_metadata")


def _supported(members: dict[str, Any], name: str, supported: list[str]) -> list[str]:
    """Return the values of a list that are supported, of which the first must be there."""
    values = members.get(name, supported)
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    kept = [each for each in supported if is_list and each in values]
    if supported[0] not in kept:
        raise _invalid(
            f"{name} must be a list of {', '.join(supported)} with {supported[0]}."
        )
    return kept


def _redirect_uris(uris: object, is_public_client: bool) -> list[str]:
    """Return the addresses that the policy allows, each once.

    Well-formed ones that the operator did not list are left out: real applications send those of
    all their editions. Raises OAuthError for any other, and when none is left.
    """
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECTS:
        text = f"redirect_uris must be a list of 1 to {MAX_REDIRECTS} addresses."
        raise OAuthError(text, "invalid_redirect_uri")
    words, kept, refusals = settings.OAUTH_ALLOWED_REDIRECTS, {}, []
    for number, uri in enumerate(uris):
        try:
            redirects.check(uri, allowed=words, is_public_client=is_public_client)
            kept[uri] = True
        except redirects.RedirectRefusedError as error:
            refusals.append(f"redirect_uris[{number}]: {error}")
            if not isinstance(error, redirects.RedirectNotListedError):
                raise OAuthError(refusals[-1], "invalid_redirect_uri") from error
    if not kept:
        raise OAuthError(refusals[0], "invalid_redirect_uri")
    return list(kept)


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
