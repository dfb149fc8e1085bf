"""The addresses whose responses are pinned, with bodies that each of them takes."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from tests.contract.golden import FORM, JSON, Route

# A literal address: it needs no resolver, and nothing is ever sent to it in these tests.
URL = "https://93.184.216.34/hook"
Bodies = Mapping[str, tuple[str, str]]


def as_json(**bodies: object) -> dict[str, tuple[str, str]]:
    return {name: (json.dumps(body), JSON) for name, body in bodies.items()}


def as_form(**bodies: str) -> dict[str, tuple[str, str]]:
    return {name: (body, FORM) for name, body in bodies.items()}


ACCOUNTS = ("nobody", "bad token", "gateway key", "account")
TENANTS = ("nobody", "bad token", "account", "gateway key", "headers", "half headers")


def of_account(path: str, bodies: Bodies = MappingProxyType({})) -> Route:
    return Route(path, ACCOUNTS, bodies, readers=frozenset({"account"}))


def of_tenant(path: str, bodies: Bodies = MappingProxyType({})) -> Route:
    return Route(path, TENANTS, bodies, readers=frozenset({"gateway key", "headers"}))


# For addresses at which no body changes the response.
RIGHT = as_json(right={"url": URL})
RECORDING_FIELDS = as_json(
    empty={},
    right={"url": URL, "events": ["summary.completed"]},
    no_events={"url": URL},
    no_url={"events": []},
    empty_url={"url": "", "events": []},
    null_url={"url": None},
    number_url={"url": 5},
    http={"url": "http://example.com/"},
    private={"url": "https://10.0.0.1/"},
    userinfo={"url": "https://a:b@93.184.216.34/"},
    unknown_event={"url": URL, "events": ["no.such"]},
    text_events={"url": URL, "events": "summary.completed"},
    number_event={"url": URL, "events": [5]},
    unknown_field={"url": URL, "events": [], "status": 2, "secret": "x"},
)
GATEWAY_FIELDS = as_json(
    empty={},
    right={"url": URL, "event_types": ["ingest.completed"]},
    with_secret={"url": URL, "secret": "0123456789abcdef"},
    no_url={"event_types": []},
    null_url={"url": None},
    private={"url": "http://10.0.0.1/"},
    unknown_event={"url": URL, "event_types": ["no.such"]},
    test_event={"url": URL, "event_types": ["webhook.test"]},
    text_events={"url": URL, "event_types": "x"},
    description={"url": URL, "description": "Grüße"},
    long_description={"url": URL, "description": "x" * 1001},
    number_description={"url": URL, "description": 5},
    null_description={"url": URL, "description": None},
    nul_description={"url": URL, "description": "\0"},
    inactive={"url": URL, "active": False},
    text_active={"url": URL, "active": "false"},
    number_active={"url": URL, "active": 1},
    null_active={"url": URL, "active": None},
    # A missing url is the last fault.
    number_active_alone={"active": 1},
    null_secret={"url": URL, "secret": None},
    empty_secret={"url": URL, "secret": ""},
    long_secret={"url": URL, "secret": "x" * 257},
    number_secret={"url": URL, "secret": 7},
    foreign_secret={"url": URL, "secret": "ключ"},
    control_secret={"url": URL, "secret": "a\nb"},
    secret_of_spaces={"url": URL, "secret": "  "},
    secret_of_a_prefix={"url": URL, "secret": "whsec_"},
    filter={"url": URL, "filter": {"data": {"value": {"$gt": 0.5}}}},
    null_filter={"url": URL, "filter": None},
    text_filter={"url": URL, "filter": "x"},
    unknown_operator={"url": URL, "filter": {"type": {"$regex": "x"}}},
)
INGEST_FIELDS = as_json(
    empty={},
    right={"title": "T", "text": "A text."},
    number_text={"text": 5},
    empty_text={"text": ""},
    metadata={"text": "A", "metadata": {"a": 1}},
    bad_metadata={"text": "A", "metadata": []},
    null_metadata={"text": "A", "metadata": None},
    large_metadata={"text": "A", "metadata": {"a": "x" * 16_384}},
    null_text={"text": None},
    blank_text={"text": " \n"},
    nul_text={"text": "a\0b"},
    null_title={"text": "A", "title": None},
    long_title={"text": "A", "title": "x" * 256},
    nul_title={"text": "A", "title": "\0"},
    number_type={"text": "A", "content_type": 1},
    other_type={"text": "A", "content_type": "application/pdf"},
    null_type={"text": "A", "content_type": None},
)
DRIFT = {"subject": "s", "metric": "m", "value": 1, "threshold": 0.5}
EVENT_FIELDS = as_json(
    empty={},
    right={"type": "drift.detected", "data": DRIFT},
    unknown_type={"type": "no.such", "data": {}},
    contract_type={"type": "ingest.completed", "data": {}},
    no_data={"type": "drift.detected"},
)
KEY_FIELDS = as_json(empty={}, right={"name": "robot", "scopes": ["chat"]})
PORTAL_FIELDS = as_json(
    empty={},
    right={"capabilities": ["view", "manage"], "actor": "Grace"},
    no_view={"capabilities": ["manage"]},
    unknown={"capabilities": ["view", "root"]},
    long={"capabilities": ["view"], "expires_in": 604_801},
    number_actor={"capabilities": ["view"], "actor": 5},
)
CHAT_FIELDS = as_json(
    empty={},
    right={"model": "echo", "messages": [{"role": "user", "content": "Ahoy"}]},
    unknown={"model": "no-such", "messages": []},
    number_model={"model": 5},
    text_stream={"model": "echo", "stream": "yes"},
    no_messages={"model": "echo"},
)
GRAPHQL_FIELDS = as_json(
    empty={},
    right={"query": "{ getAllBooks { name } }"},
    write={"query": 'mutation { deleteBook(id: "7") }'},
    unparsable={"query": "{"},
    invalid={"query": "{ nothing }"},
    number_query={"query": 5},
)
REGISTRATION = as_json(
    empty={},
    right={"redirect_uris": ["http://127.0.0.1/cb"]},
    public={"redirect_uris": ["http://[::1]/"], "token_endpoint_auth_method": "none"},
    stranger={"redirect_uris": ["https://stranger.example/cb"]},
    fragment={"redirect_uris": ["http://127.0.0.1/#x"]},
    bad_method={
        "redirect_uris": ["http://127.0.0.1/"],
        "token_endpoint_auth_method": 1,
    },
)
TOKENS = as_form(
    unknown_grant="grant_type=password",
    no_client="grant_type=authorization_code&code=x",
    unknown_client="grant_type=refresh_token&refresh_token=x&client_id=none",
)

HOOKS, SUBSCRIPTIONS = "/v1/webhooks", "/v1/webhooks/subscriptions"

NO_DELIVERY = f"dlv_{'1' * 26}"
SINCE = "2026-01-01T00:00:00Z"
# Below a subscription: what needs no body, and what resends many.
OF_OWNERS = (
    *("/settings", "/settings?x=1", "/secret/rotate?x=1", "/deliveries?status=x"),
    *("/deliveries?event_id=x", "/deliveries?page_size=0"),
    *(f"/deliveries/{NO_DELIVERY}{tail}" for tail in ("", "/resend")),
)
RESEND = as_json(
    empty={},
    right={"since": SINCE},
    missed={"since": SINCE, "status": "missed", "dry_run": True},
    no_status={"since": SINCE, "status": "delivered"},
    number_since={"since": 5},
    no_zone={"since": "2026-01-01T00:00:00"},
    backwards={"since": SINCE, "until": "2025-01-01T00:00:00Z"},
    text_dry_run={"since": SINCE, "dry_run": "yes"},
    unknown_field={"since": SINCE, "endpoint": "x"},
)

DJANGO_ROUTES = (
    of_account(HOOKS, RECORDING_FIELDS),
    of_account(f"{HOOKS}/{{endpoint}}", RECORDING_FIELDS),
    of_account(f"{HOOKS}/{{other_endpoint}}", RIGHT),
    of_account(f"{HOOKS}/{{absent_endpoint}}", RIGHT),
    of_account(f"{HOOKS}/{{endpoint}}/test"),
    of_account(f"{HOOKS}/{{other_endpoint}}/test"),
    of_account(f"{HOOKS}/{{endpoint}}/deliveries"),
    Route(f"{HOOKS}/{{endpoint}}/deliveries?page=0", ("account",)),
    Route(f"{HOOKS}/{{endpoint}}/deliveries?page=9&page_size=999", ("account",)),
    *(Route(f"{HOOKS}/{{endpoint}}{tail}", ("account",)) for tail in OF_OWNERS),
    Route(f"{HOOKS}/{{endpoint}}/resend", ("account",), RESEND),
    of_account(f"{HOOKS}/{{other_endpoint}}/resend"),
    of_account(f"{HOOKS}/{{endpoint}}/nothing"),
    of_account("/v1/webhook-events/samples"),
    of_account("/v1/webhook-events/samples?event=summary.completed"),
    Route("/v1/webhook-events/samples?event=no.such", ("account",)),
    of_tenant(SUBSCRIPTIONS, GATEWAY_FIELDS),
    of_tenant(f"{SUBSCRIPTIONS}/{{subscription}}", GATEWAY_FIELDS),
    of_tenant(f"{SUBSCRIPTIONS}/{{other_subscription}}", RIGHT),
    of_tenant(f"{SUBSCRIPTIONS}/{{absent_subscription}}", RIGHT),
    of_tenant(f"{SUBSCRIPTIONS}/{{subscription}}/test"),
    of_tenant(f"{SUBSCRIPTIONS}/{{subscription}}/deliveries"),
    Route(f"{SUBSCRIPTIONS}/{{subscription}}/deliveries?page=x", ("headers",)),
    *(
        Route(f"{SUBSCRIPTIONS}/{{subscription}}{tail}", ("headers",))
        for tail in OF_OWNERS
    ),
    Route(f"{SUBSCRIPTIONS}/{{subscription}}/resend", ("headers",), RESEND),
    of_tenant(f"{SUBSCRIPTIONS}/{{other_subscription}}/resend"),
    of_tenant("/v1/ingest", INGEST_FIELDS),
    of_tenant("/v1/events", EVENT_FIELDS),
    Route("/v1/events?x=1", ("headers",)),
    of_tenant("/v1/keys", KEY_FIELDS),
    of_tenant("/v1/keys/1"),
    of_tenant("/v1/portal", PORTAL_FIELDS),
    of_tenant(f"/v1/portal/prt_{'0' * 26}"),
    Route("/portal", shows_body=False),
    Route("/portal/open/nothing", shows_body=False),
    of_tenant("/v1/usage"),
    Route("/v1/usage?days=x", ("headers",)),
    of_account("/v1/nothing"),
    of_tenant("/v2/nothing"),
    Route("/graphql", ("nobody", "bad token", "account"), GRAPHQL_FIELDS),
    Route("/graphql?query={getAllBooks{name}}"),
    Route("/.well-known/oauth-authorization-server"),
    Route("/.well-known/oauth-protected-resource"),
    Route("/.well-known/oauth-protected-resource/mcp"),
    Route("/.well-known/nothing"),
    Route("/oauth/register", ("nobody",), REGISTRATION),
    Route("/oauth/token", ("nobody",), TOKENS),
    Route("/oauth/revoke", ("nobody",), as_form(unknown="token=x&client_id=none")),
    Route("/oauth/authorize", shows_body=False),
    Route("/oauth/authorize?client_id=none", shows_body=False),
    Route("/accounts/login/", ("nobody", "session"), shows_body=False),
    Route("/accounts", ("nobody", "session"), shows_body=False),
    Route("/accounts/tokens", ("nobody", "session"), shows_body=False),
    Route("/", ("nobody", "session"), shows_body=False),
    Route("/docs", shows_body=False),
    Route("/openapi.json", shows_body=False),
    Route("/healthz"),
    Route("/v1/ingest/nothing"),
    Route(f"{SUBSCRIPTIONS}/x/y"),
    Route("/nothing", shows_body=False),
)
CHAT_ROUTES = (
    *(
        of_tenant(path, CHAT_FIELDS)
        for path in ("/v2/chat/completions", "/v1/chat/completions", "/v1/embeddings")
    ),
    *(
        Route(path, ("nobody", "headers"), CHAT_FIELDS)
        for path in ("/chat/completions", "/v2/chat/completion")
    ),
    *(
        of_tenant(path, CHAT_FIELDS)
        for path in ("/v1/messages", "/v1/messages/count_tokens", "/v1/responses")
    ),
    of_tenant("/v1/models"),
    Route("/v1/models/echo", ("nobody", "headers")),
    Route("/v1/models/no-such", ("nobody", "headers")),
)
