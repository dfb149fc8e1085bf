"""Every setting, and every environment variable, in one place. docs/settings.md explains each."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import django_stubs_ext
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from config import third_party
from config.environment import (
    Environment,
    boolean,
    ca_file,
    check_local,
    database,
    each,
    fernet_key,
    host,
    integer,
    log_level,
    metrics_token,
    network,
    one_of,
    origin,
    origins,
    rate,
    redis_url,
    stored_key,
    with_query,
)
from config.third_party import *  # noqa: F403 - settings that depend on no other

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"
VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"][
    "version"
]

env = Environment()

# ── The environment ─────────────────────────────────────────────────────────────────

ENVIRONMENT = env("ENVIRONMENT", str, "local")
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

SECRET_KEY = env("SECRET_KEY", str, local_secret("secret-key"))
DEBUG = env("DEBUG", boolean, False)
ALLOWED_HOSTS = env("ALLOWED_HOSTS", each(str, 1), locally("localhost,127.0.0.1,[::1]"))
BASE_URL_GIVEN = not {"BASE_URL", "BASE_URL_FILE"}.isdisjoint(os.environ)
BASE_URL = env("BASE_URL", origin, locally("http://127.0.0.1:8000"))
DATABASE = env(
    "DATABASE_URL",
    database,
    locally(f"sqlite:///{quote(str(VAR_DIR / 'signpost.sqlite3'))}"),
)
REDIS_URL = env("REDIS_URL", redis_url, locally(""))
SQLITE_SYNCHRONOUS = env(
    "SQLITE_SYNCHRONOUS",
    one_of("OFF", "NORMAL", "FULL", "EXTRA"),
    "NORMAL" if LOCAL else "FULL",
)
SECURE_SSL_REDIRECT = env("SECURE_SSL_REDIRECT", boolean, not LOCAL)
TRUST_X_FORWARDED_PROTO = env("TRUST_X_FORWARDED_PROTO", boolean, False)
LOG_LEVEL = env("LOG_LEVEL", log_level, "INFO")
SECURE_HSTS_SECONDS = env("SECURE_HSTS_SECONDS", integer(), 0 if LOCAL else 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env("SECURE_HSTS_INCLUDE_SUBDOMAINS", boolean, False)
SECURE_HSTS_PRELOAD = env("SECURE_HSTS_PRELOAD", boolean, False)
WEB_KEEP_ALIVE_S = env("WEB_KEEP_ALIVE_S", integer(1, 3600), 75)
WEB_THREADS = env("WEB_THREADS", integer(1, 1000), 8)
WEB_MCP_THREADS = env("WEB_MCP_THREADS", integer(1, 1000), 2)
WEB_STATEMENT_TIMEOUT_S = env("WEB_STATEMENT_TIMEOUT_S", integer(1, 3600), 10)
WORKERS = env("WORKERS", integer(2, 1000), 2)
EXTRA_CA_FILE = env("EXTRA_CA_FILE", ca_file, "")
METRICS_TOKEN = env("METRICS_TOKEN", metrics_token, "")

EMAIL_HOST = env("EMAIL_HOST", str, "")
EMAIL_PORT = env("EMAIL_PORT", integer(1, 65_535), 587)
EMAIL_HOST_USER = env("EMAIL_HOST_USER", str, "")
EMAIL_HOST_PASSWORD = env("EMAIL_HOST_PASSWORD", str, "")
EMAIL_USE_TLS = env("EMAIL_USE_TLS", boolean, True)
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", str, "signpost@localhost")

WEBHOOK_SECRET_KEYS = env(
    "WEBHOOK_SECRET_KEYS", each(fernet_key, 1), local_secret("webhook-secret-keys")
)
WEBHOOK_ALLOWED_TARGETS = env("WEBHOOK_ALLOWED_TARGETS", each(network), "")
WEBHOOK_PROXY_URL = env("WEBHOOK_PROXY_URL", str, "")
WEBHOOK_RETENTION_DAYS = env("WEBHOOK_RETENTION_DAYS", integer(1, 36_500), 30)
WEBHOOK_DISPATCHERS = env("WEBHOOK_DISPATCHERS", integer(1, 1000), 4)

# Rates: `<number>/<second, minute, hour or day>`, or empty for no limit.
RECORDING_RATES = {
    "create": env("RECORDING_CREATE_RATE", rate, "" if LOCAL else "60/hour"),
    "test": env("RECORDING_TEST_RATE", rate, "" if LOCAL else "120/hour"),
    "resend": env("RECORDING_RESEND_RATE", rate, "" if LOCAL else "600/hour"),
    "mcp": env("RECORDING_MCP_RATE", rate, "" if LOCAL else "300/minute"),
    "challenge": env("MCP_EVENTS_CHALLENGE_RATE", rate, "" if LOCAL else "60/hour"),
}
MCP_EVENTS_SUBSCRIPTIONS = env("MCP_EVENTS_SUBSCRIPTIONS", integer(0, 32_767), 50)
MCP_EVENTS_MAX_TTL_S = env("MCP_EVENTS_MAX_TTL_S", integer(300), 604_800)
GATEWAY_CONFIG = env(
    "GATEWAY_CONFIG", str, locally(str(BASE_DIR / "gateway" / "sample.yaml"))
)
GATEWAY_CHAT_POLICY = env("GATEWAY_CHAT_POLICY", str, "")
GATEWAY_TRUSTED_PROXIES = env(
    "GATEWAY_TRUSTED_PROXIES", each(network), "127.0.0.0/8,::1/128" if LOCAL else ""
)
GATEWAY_SUBSCRIPTION_QUOTA = env("GATEWAY_SUBSCRIPTION_QUOTA", integer(1, 1_000), 100)
GATEWAY_MIN_SECRET_LENGTH = env(
    "GATEWAY_MIN_SECRET_LENGTH", integer(1, 256), 1 if LOCAL else 16
)
GATEWAY_INGEST_MAX_BYTES = env(
    "GATEWAY_INGEST_MAX_BYTES", integer(1, 10 * 1024 * 1024), 10 * 1024 * 1024
)
GATEWAY_DECISION_RETENTION_DAYS = env(
    "GATEWAY_DECISION_RETENTION_DAYS", integer(0, 36_500), 365
)
GATEWAY_DOCUMENT_RETENTION_DAYS = env(
    "GATEWAY_DOCUMENT_RETENTION_DAYS", integer(0, 36_500), 0
)
GATEWAY_RATES = {
    "create": env("GATEWAY_CREATE_RATE", rate, "" if LOCAL else "300/hour"),
    "test": env("GATEWAY_TEST_RATE", rate, "" if LOCAL else "120/hour"),
    "resend": env("GATEWAY_RESEND_RATE", rate, "" if LOCAL else "600/hour"),
    "ingest": env("GATEWAY_INGEST_RATE", rate, "" if LOCAL else "120/minute"),
    "publish": env("GATEWAY_PUBLISH_RATE", rate, "" if LOCAL else "600/minute"),
}
PORTAL_FRAME_ANCESTORS = env("PORTAL_FRAME_ANCESTORS", origins, "")

TRUSTED_PROXY_COUNT = env("TRUSTED_PROXY_COUNT", integer(), 0)
OAUTH_ALLOWED_REDIRECTS = env(
    "OAUTH_ALLOWED_REDIRECTS", each(str), locally("vscode,cursor")
)
OAUTH_CIMD_HOSTS = env("OAUTH_CIMD_HOSTS", each(host), "*")
OAUTH_CLIENTS_PER_ADDRESS = env("OAUTH_CLIENTS_PER_ADDRESS", integer(1), 500)
OAUTH_REFRESH_LEEWAY = env("OAUTH_REFRESH_LEEWAY", integer(0, 86_400), 60)
OAUTH_RATES = {
    "register": env("OAUTH_REGISTER_RATE", rate, "" if LOCAL else "300/hour"),
    "authorize": env("OAUTH_AUTHORIZE_RATE", rate, "" if LOCAL else "60/minute"),
    "token": env("OAUTH_TOKEN_RATE", rate, "" if LOCAL else "300/minute"),
}

REQUIRE_STAFF_SECOND_FACTOR = env("REQUIRE_STAFF_SECOND_FACTOR", boolean, False)

CATALOG_WRITES = env(
    "CATALOG_WRITES",
    one_of("open", "authenticated"),
    "open" if LOCAL else "authenticated",
)
CATALOG_ROW_BUDGET = env("CATALOG_ROW_BUDGET", integer(1), 100_000)
CATALOG_CORS_ORIGINS = env("CATALOG_CORS_ORIGINS", origins, "")
CHAT_REQUESTS_AT_ONCE = env("CHAT_REQUESTS_AT_ONCE", integer(), 1000)
CHAT_PUBLIC_PRICES = env("CHAT_PUBLIC_PRICES", boolean, True)
CHAT_RESERVED_TOKENS = env("CHAT_RESERVED_TOKENS", integer(), 1024)
CHAT_KEEPALIVE_S = env("CHAT_KEEPALIVE_S", integer(), 15)
CHAT_USAGE_RETENTION_DAYS = env("CHAT_USAGE_RETENTION_DAYS", integer(1, 36_500), 90)

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
    "config.operations.metrics.MetricsMiddleware",
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
MESSAGE_STORAGE = "config.cookies.MessageStorage"
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
