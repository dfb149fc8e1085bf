"""Every setting, and every environment variable, in one place. docs/settings.md explains each."""

from __future__ import annotations

import logging
import os
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import django_stubs_ext
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured
from environs import validate

from config import third_party
from config.environment import Environment, check_local, stored_key, with_query
from config.third_party import *  # noqa: F403 - settings that depend on no other

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"
VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"][
    "version"
]

env = Environment()

# ── The environment ─────────────────────────────────────────────────────────────────

ENVIRONMENT = env.str("ENVIRONMENT", "local")
if ENVIRONMENT not in {"local", "production"}:
    raise ImproperlyConfigured(
        f"ENVIRONMENT: {ENVIRONMENT!r} is neither local nor production."
    )
LOCAL = ENVIRONMENT == "local"


def locally(value: Any) -> Any:
    """Return a variable's default locally; in production it has none and must be set."""
    return value if LOCAL else ...


def local_secret(name: str) -> Any:
    """Return a random default, created once and stored in var/; none in production."""
    return stored_key(VAR_DIR / name) if LOCAL else ...


# ── The environment variables ───────────────────────────────────────────────────────

SECRET_KEY = env.str("SECRET_KEY", local_secret("secret-key"))
DEBUG = env.bool("DEBUG", False)
ALLOWED_HOSTS = env.some("ALLOWED_HOSTS", locally("localhost,127.0.0.1,[::1]"))
BASE_URL_GIVEN = not {"BASE_URL", "BASE_URL_FILE"}.isdisjoint(os.environ)
BASE_URL = env.origin("BASE_URL", locally("http://127.0.0.1:8000"))
DATABASE = env.database(
    "DATABASE_URL", locally(f"sqlite:///{quote(str(VAR_DIR / 'signpost.sqlite3'))}")
)
REDIS_URL = env.redis_url("REDIS_URL", locally(""))
SQLITE_SYNCHRONOUS = env.str(
    "SQLITE_SYNCHRONOUS",
    "NORMAL" if LOCAL else "FULL",
    validate=validate.OneOf(["OFF", "NORMAL", "FULL", "EXTRA"]),
)
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", not LOCAL)
TRUST_X_FORWARDED_PROTO = env.bool("TRUST_X_FORWARDED_PROTO", False)
LOG_LEVEL = env.log_level("LOG_LEVEL", logging.INFO)
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 0 if LOCAL else 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", False)
WEB_KEEP_ALIVE_S = env.integer("WEB_KEEP_ALIVE_S", 75, least=1, most=3600)
WEB_THREADS = env.integer("WEB_THREADS", 8, least=1, most=1000)
WEB_MCP_THREADS = env.integer("WEB_MCP_THREADS", 2, least=1, most=1000)
WEB_STATEMENT_TIMEOUT_S = env.integer("WEB_STATEMENT_TIMEOUT_S", 10, least=1, most=3600)
WORKERS = env.integer("WORKERS", 2, least=2, most=1000)
EXTRA_CA_FILE = env.ca_file("EXTRA_CA_FILE", "")
METRICS_TOKEN = env.metrics_token("METRICS_TOKEN", "")

EMAIL_HOST = env.str("EMAIL_HOST", "")
EMAIL_PORT = env.integer("EMAIL_PORT", 587, least=1, most=65_535)
EMAIL_HOST_USER = env.str("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.str("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = env.bool("EMAIL_USE_TLS", True)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", "signpost@localhost")

WEBHOOK_SECRET_KEYS = env.fernet_keys(
    "WEBHOOK_SECRET_KEYS", local_secret("webhook-secret-keys")
)
WEBHOOK_ALLOWED_TARGETS = env.networks("WEBHOOK_ALLOWED_TARGETS", "")
WEBHOOK_PROXY_URL = env.str("WEBHOOK_PROXY_URL", "")
WEBHOOK_RETENTION_DAYS = env.integer("WEBHOOK_RETENTION_DAYS", 30, least=1, most=36_500)
WEBHOOK_DISPATCHERS = env.integer("WEBHOOK_DISPATCHERS", 4, least=1, most=1000)

# Rates: `<number>/<second, minute, hour or day>`, or empty for no limit.
RECORDING_RATES = {
    "create": env.rate("RECORDING_CREATE_RATE", "" if LOCAL else "60/hour"),
    "test": env.rate("RECORDING_TEST_RATE", "" if LOCAL else "120/hour"),
    "resend": env.rate("RECORDING_RESEND_RATE", "" if LOCAL else "600/hour"),
    "mcp": env.rate("RECORDING_MCP_RATE", "" if LOCAL else "300/minute"),
    "challenge": env.rate("MCP_EVENTS_CHALLENGE_RATE", "" if LOCAL else "60/hour"),
}
MCP_EVENTS_SUBSCRIPTIONS = env.integer("MCP_EVENTS_SUBSCRIPTIONS", 50, most=32_767)
MCP_EVENTS_MAX_TTL_S = env.integer("MCP_EVENTS_MAX_TTL_S", 604_800, least=300)
GATEWAY_CONFIG = env.str(
    "GATEWAY_CONFIG", locally(str(BASE_DIR / "gateway" / "sample.yaml"))
)
GATEWAY_CHAT_POLICY = env.str("GATEWAY_CHAT_POLICY", "")
GATEWAY_TRUSTED_PROXIES = env.networks(
    "GATEWAY_TRUSTED_PROXIES", "127.0.0.0/8,::1/128" if LOCAL else ""
)
GATEWAY_SUBSCRIPTION_QUOTA = env.integer(
    "GATEWAY_SUBSCRIPTION_QUOTA", 100, least=1, most=1_000
)
GATEWAY_MIN_SECRET_LENGTH = env.integer(
    "GATEWAY_MIN_SECRET_LENGTH", 1 if LOCAL else 16, least=1, most=256
)
GATEWAY_INGEST_MAX_BYTES = env.integer(
    "GATEWAY_INGEST_MAX_BYTES", 10 * 1024 * 1024, least=1, most=10 * 1024 * 1024
)
GATEWAY_DECISION_RETENTION_DAYS = env.integer(
    "GATEWAY_DECISION_RETENTION_DAYS", 365, most=36_500
)
GATEWAY_DOCUMENT_RETENTION_DAYS = env.integer(
    "GATEWAY_DOCUMENT_RETENTION_DAYS", 0, most=36_500
)
GATEWAY_RATES = {
    "create": env.rate("GATEWAY_CREATE_RATE", "" if LOCAL else "300/hour"),
    "test": env.rate("GATEWAY_TEST_RATE", "" if LOCAL else "120/hour"),
    "resend": env.rate("GATEWAY_RESEND_RATE", "" if LOCAL else "600/hour"),
    "ingest": env.rate("GATEWAY_INGEST_RATE", "" if LOCAL else "120/minute"),
    "publish": env.rate("GATEWAY_PUBLISH_RATE", "" if LOCAL else "600/minute"),
}
PORTAL_FRAME_ANCESTORS = env.origins("PORTAL_FRAME_ANCESTORS", "")

TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", 0)
OAUTH_ALLOWED_REDIRECTS = env.words("OAUTH_ALLOWED_REDIRECTS", locally("vscode,cursor"))
OAUTH_CIMD_HOSTS = env.hosts("OAUTH_CIMD_HOSTS", "*")
OAUTH_CLIENTS_PER_ADDRESS = env.integer("OAUTH_CLIENTS_PER_ADDRESS", 500, least=1)
OAUTH_REFRESH_LEEWAY = env.integer("OAUTH_REFRESH_LEEWAY", 60, most=86_400)
OAUTH_RATES = {
    "register": env.rate("OAUTH_REGISTER_RATE", "" if LOCAL else "300/hour"),
    "authorize": env.rate("OAUTH_AUTHORIZE_RATE", "" if LOCAL else "60/minute"),
    "token": env.rate("OAUTH_TOKEN_RATE", "" if LOCAL else "300/minute"),
}

REQUIRE_STAFF_SECOND_FACTOR = env.bool("REQUIRE_STAFF_SECOND_FACTOR", False)

CATALOG_WRITES = env.str(
    "CATALOG_WRITES",
    "open" if LOCAL else "authenticated",
    validate=validate.OneOf(["open", "authenticated"]),
)
CATALOG_ROW_BUDGET = env.integer("CATALOG_ROW_BUDGET", 100_000, least=1)
CATALOG_CORS_ORIGINS = env.origins("CATALOG_CORS_ORIGINS", "")
CHAT_REQUESTS_AT_ONCE = env.integer("CHAT_REQUESTS_AT_ONCE", 1000)
CHAT_PUBLIC_PRICES = env.bool("CHAT_PUBLIC_PRICES", True)
CHAT_RESERVED_TOKENS = env.integer("CHAT_RESERVED_TOKENS", 1024)
CHAT_KEEPALIVE_S = env.integer("CHAT_KEEPALIVE_S", 15)
CHAT_USAGE_RETENTION_DAYS = env.integer(
    "CHAT_USAGE_RETENTION_DAYS", 90, least=1, most=36_500
)

env.complete()

if LOCAL:
    check_local(
        BASE_URL=[urlsplit(BASE_URL).hostname or ""], ALLOWED_HOSTS=ALLOWED_HOSTS
    )

# ── The application ─────────────────────────────────────────────────────────────────

INSTALLED_APPS = [
    "config.apps.ConfigConfig",
    # Before recording, whose admin replaces theirs.
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "catalog.apps.CatalogConfig",
    "recording.apps.RecordingConfig",
    "gateway.apps.GatewayConfig",
    "gateway.chat.apps.ChatConfig",
    "webhooks_core.apps.WebhooksCoreConfig",
    "config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "corsheaders",
    "django_q",
    "rest_framework",
    "graphene_django",
    "recording.oauth.apps.OAuthConfig",
    "oauth2_provider",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

# Of the addresses of APIs: they read no cookie, so they have no session, no user of a session and no
# form to protect (config/wsgi.py).
API_MIDDLEWARE = [
    "config.operations.logs.RequestLogMiddleware",
    "config.middleware.MetricsMiddleware",
    "config.middleware.HostMiddleware",
    *(["corsheaders.middleware.CorsMiddleware"] if CATALOG_CORS_ORIGINS else []),
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
MIDDLEWARE = [
    *API_MIDDLEWARE,
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"
APPEND_SLASH = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_USE_FINDERS = LOCAL  # production runs collectstatic
if LOCAL:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns without it
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if LOCAL
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
MEDIA_ROOT = VAR_DIR / "media"

LOGIN_URL = LOGOUT_REDIRECT_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/accounts"

# ── Database, cache, tasks ──────────────────────────────────────────────────────────

if DATABASE["ENGINE"] == "django.db.backends.sqlite3":
    WEBHOOK_DISPATCHERS = 1  # SQLite has one writer
    # Writers wait instead of failing: BEGIN IMMEDIATE takes the lock before the first read.
    DATABASE |= {
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={SQLITE_SYNCHRONOUS};",
        },
    }
else:
    DATABASE |= {"CONN_MAX_AGE": 600, "CONN_HEALTH_CHECKS": True}
DATABASES = {"default": DATABASE}

# A Redis that never answers must block neither publishers nor the task cluster, whose pusher
# waits up to a second for each task.
REDIS_TIMEOUTS = {"socket_connect_timeout": 2, "socket_timeout": 4}

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": REDIS_TIMEOUTS,
    }
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # With Django's 300, senders of some hundred names make it forget who has sent too much.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

Q_CLUSTER = third_party.Q_CLUSTER | {
    "workers": WORKERS,
    **(
        {"redis": with_query(REDIS_URL, REDIS_TIMEOUTS)}
        if REDIS_URL
        else {"orm": "default"}
    ),
}

# ── E-mail ──────────────────────────────────────────────────────────────────────────

EMAIL_TIMEOUT = 10
# Locally an e-mail is printed; in production there is none without a server to send it.
SENDS_EMAIL = LOCAL or bool(EMAIL_HOST)
EMAIL_BACKEND = "django.core.mail.backends.{}.EmailBackend".format(
    "smtp" if EMAIL_HOST else "console" if LOCAL else "dummy"
)

# ── Security ────────────────────────────────────────────────────────────────────────

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not LOCAL
# A browser accepts this prefix only from this host, over https, for the whole site. So no sibling
# domain can set such a cookie.
COOKIE_PREFIX = "" if LOCAL else "__Host-"
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}csrftoken"
MESSAGE_STORAGE = "config.cookies.PrefixedCookieStorage"
# Probes and scrapers ask each web process directly, over plain http.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_X_FORWARDED_PROTO else None
)
# Not no-referrer: browsers would send `Origin: null`, and Django would refuse forms over https.
SECURE_REFERRER_POLICY = "same-origin"
CSRF_TRUSTED_ORIGINS = [BASE_URL]
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

# ── The products ────────────────────────────────────────────────────────────────────


PASSWORD_HASHERS = [
    *global_settings.PASSWORD_HASHERS,  # passwords of users
    "recording.accounts.hashers.RandomSecretHasher",  # client secrets
]

ACCOUNT_DEFAULT_HTTP_PROTOCOL = urlsplit(BASE_URL).scheme
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = LOCAL

OAUTH2_PROVIDER_APPLICATION_MODEL = "recording_oauth.Application"
OAUTH2_PROVIDER_GRANT_MODEL = "recording_oauth.Grant"
OAUTH2_PROVIDER = third_party.OAUTH2_PROVIDER | {"OIDC_ISS_ENDPOINT": BASE_URL}

SPECTACULAR_SETTINGS = third_party.SPECTACULAR_SETTINGS | {"VERSION": VERSION}

# Takes a bearer token and returns its user, or None.
CATALOG_TOKEN_AUTHENTICATOR = "recording.accounts.personal_tokens.authenticate"  # noqa: S105

# Scripts of other sites may read the catalogue from these origins, without cookies.
CORS_URLS_REGEX = r"^/graphql$"
CORS_ALLOWED_ORIGINS = [origin for origin in CATALOG_CORS_ORIGINS if origin != "*"]
CORS_ALLOW_ALL_ORIGINS = "*" in CATALOG_CORS_ORIGINS
CORS_ALLOW_METHODS = ["GET", "POST"]
CORS_EXPOSE_HEADERS = ["Retry-After", "X-Request-Id"]

LOGGING_CONFIG = "config.operations.logs.configure"
LOGGING = {"level": LOG_LEVEL, "as_json": not LOCAL}
