"""Applications, and codes stored as hashes."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.http.request import validate_host
from django.utils import timezone
from oauth2_provider.models import AbstractApplication, AbstractGrant

from recording.oauth import redirects

REFRESH_LIFETIME = timedelta(days=90)
# A used code stays for so long, so that its replay is still detected.
REPLAY_DETECTION = timedelta(days=1)


class AuthMethod(models.TextChoices):
    """How an application authenticates at the token endpoint (RFC 7591 section 2)."""

    NONE = "none"
    BASIC = "client_secret_basic"
    POST = "client_secret_post"


class ApplicationQuerySet(models.QuerySet["Application"]):
    """Questions about applications."""

    def find(self, client_id: str) -> Application | None:
        """Return the application with an id, which may be any text from a request."""
        if "\x00" in client_id:  # PostgreSQL refuses it as text
            return None
        return self.filter(client_id=client_id).first()

    def unused(self, *, since: datetime) -> ApplicationQuerySet:
        """Keep those without tokens that registered themselves before this time."""
        manual = Application.RegistrationSource.MANUAL
        rows: ApplicationQuerySet = self.filter(
            ~Q(registration_source=manual), refreshtoken=None, created__lt=since
        )
        return rows


class Application(AbstractApplication):
    """A client: a program that acts for the accounts that connected it."""

    token_endpoint_auth_method = models.CharField(
        max_length=32, choices=AuthMethod.choices, default=AuthMethod.BASIC
    )
    registered_address = models.CharField(
        max_length=64, blank=True, default="", editable=False
    )

    objects = ApplicationQuerySet.as_manager()

    class Meta(AbstractApplication.Meta):
        indexes = [
            models.Index(
                fields=["registered_address"], name="oauth_application_address"
            )
        ]

    def clean(self) -> None:
        """Apply the same policy as dynamic registration to admin pages and commands."""
        super().clean()
        if self.authorization_grant_type != self.GRANT_AUTHORIZATION_CODE:
            raise ValidationError(
                {"authorization_grant_type": "Only authorization-code is served."}
            )
        if self.skip_authorization:
            raise ValidationError({"skip_authorization": "Consent is always asked."})
        if self.client_type == self.CLIENT_PUBLIC:
            self.token_endpoint_auth_method = AuthMethod.NONE
        elif not self.is_confidential:
            raise ValidationError(
                {"client_type": "A confidential application needs a secret."}
            )
        elif not self.hash_client_secret:
            # Of no field: the admin's form does not have it.
            raise ValidationError(
                "The secret is stored as a hash: leave out --no-hash-client-secret."
            )
        for uri in self.redirect_uris.split():
            try:
                self._check_redirect(uri)
            except redirects.RedirectRefusedError as error:
                raise ValidationError({"redirect_uris": f"{uri}: {error}"}) from error

    def get_allowed_schemes(self) -> set[str]:
        """Return every scheme of its addresses: the policy of `clean` decides, not the toolkit's."""
        return {uri.partition(":")[0] for uri in self.redirect_uris.split()}

    def _check_redirect(self, uri: str) -> None:
        redirects.check(
            uri,
            allowed=settings.OAUTH_ALLOWED_REDIRECTS,
            is_public_client=not self.is_confidential,
        )

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Return True if this address was registered and the policy still allows it."""
        try:
            self._check_redirect(uri)
        except redirects.RedirectRefusedError:
            return False
        registered = self.redirect_uris.split()
        return any(redirects.is_same(address, uri) for address in registered)

    @property
    def document_host(self) -> str:
        """Return the host whose metadata document describes it; "" if it has none."""
        is_described = self.registration_source == self.RegistrationSource.CIMD
        return urlsplit(self.client_id).netloc if is_described else ""

    @property
    def is_outdated(self) -> bool:
        """Return True if it has a metadata document that has expired."""
        return bool(self.document_host) and timezone.now() > self.cimd_expires_at

    @staticmethod
    def is_document_allowed(client_id: str) -> bool:
        """Return True if metadata documents of this host are accepted."""
        host = urlsplit(client_id).hostname or ""
        return validate_host(host, settings.OAUTH_CIMD_HOSTS)

    def is_usable(self, request: object = None) -> bool:
        """Return True if accounts may connect it: the host of its document is still allowed."""
        return not self.document_host or self.is_document_allowed(self.client_id)

    @property
    def origins(self) -> list[str]:
        """Return the origins that it sends browsers back to, each once."""
        return sorted({redirects.origin(uri) for uri in self.redirect_uris.split()})

    @property
    def is_confidential(self) -> bool:
        return bool(self.token_endpoint_auth_method != AuthMethod.NONE)


class Grant(AbstractGrant):
    """An authorization code. `code` holds its SHA-256; a used one stays to detect its replay."""

    token_family: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(
        null=True, editable=False
    )

    def consume(self, family: UUID) -> bool:
        """Mark the code as used for a new connection; False if another request was quicker."""
        unused = Grant.objects.filter(pk=self.pk, token_family=None)
        expires = timezone.now() + REPLAY_DETECTION
        return bool(unused.update(token_family=family, expires=expires))
