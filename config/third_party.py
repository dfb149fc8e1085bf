"""Settings of libraries that are the same on every machine and depend on no variable."""

from __future__ import annotations

from typing import Any

from csp import constants

Q_CLUSTER: dict[str, Any] = {
    "name": "signpost",
    "label": "Tasks",
    "recycle": 100,
    "timeout": 90,  # not of a dispatcher, which runs until it is stopped
    "retry": 120,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,  # a row for each success would halve the throughput
    "catch_up": False,
    "bulk": 10,
    "poll": 0.05,
    "log_level": "WARNING",
    "ALT_CLUSTERS": {},
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [constants.NONE],
        "script-src": [constants.SELF],
        "style-src": [constants.SELF],
        "img-src": [constants.SELF, "data:"],
        "font-src": [constants.SELF],
        "connect-src": [constants.SELF],
        "form-action": [constants.SELF],
        "frame-ancestors": [constants.NONE],
        "base-uri": [constants.NONE],
    }
}

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "webhooks_core.web.openapi.ProductAutoSchema",
    "UNAUTHENTICATED_USER": None,
}

GRAPHENE: dict[str, Any] = {
    "SCHEMA": "catalog.schema.schema",
    "SCHEMA_OUTPUT": "-.graphql",  # standard output; `manage.py schemas` writes the file
    "MIDDLEWARE": [],
}

OAUTH2_PROVIDER: dict[str, Any] = {
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "recording.oauth.validator.Validator",
    "ACCESS_TOKEN_GENERATOR": "recording.oauth.validator.make_access_token",
    "REFRESH_TOKEN_GENERATOR": "recording.oauth.validator.make_refresh_token",
    "CLIENT_SECRET_HASHER": "random_sha256",
    "APPLICATION_ADMIN_CLASS": "recording.oauth.admin.ApplicationAdmin",
    "REFRESH_TOKEN_ADMIN_CLASS": "recording.oauth.admin.RefreshTokenAdmin",
    "CIMD_ENABLED": True,
    "CIMD_METADATA_FETCHER": "recording.oauth.documents.DocumentFetcher",
    # An address that the operator has just allowed is read from a document within an hour.
    "CIMD_METADATA_MAX_AGE_SECONDS": 3600,
    # A site that sends a byte now and then holds no more threads than this.
    "CIMD_MAX_CONCURRENT_FETCHES": 2,
    "SCOPES": {"mcp:connect": "Read your recordings and manage your webhooks"},
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    # For the deletion of what has expired: from the end of the access token.
    "REFRESH_TOKEN_EXPIRE_SECONDS": 90 * 86_400 - 3600,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
    "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "refresh_token"],
    # All of RFC 9700 except REDIRECT_URI_SCHEME: native applications need http on loopback.
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
}

ACCOUNT_ADAPTER = "recording.accounts.adapters.AccountAdapter"
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Signpost: "
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_FORMS = {
    "login": "recording.accounts.passwords.NameForm",
    "change_password": "recording.accounts.passwords.ChangeForm",
    "reset_password_from_key": "recording.accounts.passwords.ResetForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
# Logins of an address; failures of a name and an address together (recording/accounts/adapters.py).
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "10/15m/key"}
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_SESSION_REMEMBER = True
MFA_ADAPTER = "recording.accounts.adapters.MFAAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "add_webauthn": "recording.accounts.passkeys.AddForm",
    "authenticate_webauthn": "recording.accounts.passkeys.AuthenticateForm",
    "reauthenticate_webauthn": "recording.accounts.passkeys.ReauthenticateForm",
}
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "Signpost"
MFA_TOTP_TOLERANCE = 1

SILENCED_SYSTEM_CHECKS = [
    # http redirect addresses: recording's own policy allows them for loopback only.
    "oauth2_provider.W008",
    # HSTS for subdomains, and preload lists: the owner of the domain decides.
    "security.W005",
    "security.W021",
]

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Signpost",
    "DESCRIPTION": "Recording: send a personal token, `Authorization: Bearer rec_pat_…`. Gateway: send a "
    "gateway key, `Authorization: Bearer gw_key_…`. You make a personal token at [/accounts](/accounts), and an operator "
    "makes a gateway key in [the admin](/admin/). The catalog is GraphQL, at [/graphql](/graphql).",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "RecordingSubscriptionStatus": "webhooks_core.models.Endpoint.Status",
        "Selection": "webhooks_core.owners.resending.Selection",
        "PortalLinkState": "gateway.models.PortalLink.State",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # By default the document's address would be sent to a validator on the internet.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "webhooks_core.web.openapi.add_webhooks",
        "gateway.chat.openapi.add_chat",
    ],
}
