"""The subscriptions of recording and of the gateway, called in one way."""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.test import Client

from tests.factories import UserFactory
from tests.gateway.client import Api as GatewayApi
from tests.receiver import Received
from tests.recording.conftest import Api as RecordingApi
from tests.signatures import verify_sha256, verify_timestamped
from webhooks_core.models import Endpoint
from webhooks_core.publishing import publish

# Literal addresses: they need no resolver, and nothing is ever sent to them in these tests.
URL = "https://93.184.216.34/hook"
OTHER_URL = "https://93.184.216.34/other"
NO_DELIVERY = f"dlv_{'0' * 26}"
# Below a subscription, besides the contract.
READS = (f"deliveries/{NO_DELIVERY}",)
VERBS = (f"deliveries/{NO_DELIVERY}/resend", "resend", "secret/rotate")


@dataclass(frozen=True)
class Product:
    """What differs between the products. `caller` returns a caller of the owner named so."""

    name: str
    path: str
    prefix: str
    id_field: str
    events: str
    event_type: str
    ping: str
    quota: int
    methods: frozenset[str]  # of one subscription
    caller: Callable[[str], "Caller"]
    codes: Mapping[int, str]  # of recording's errors
    metadata: Mapping[str, str]
    setting: str
    statuses: tuple[int | str, ...]  # pending, delivered, failed

    @property
    def absent(self) -> str:
        return self.prefix + "0" * 26

    @property
    def routes(self) -> dict[str, set[str]]:
        """The methods of each address, with `{id}` for one of a subscription."""
        return {
            "": {"GET", "HEAD", "POST"},
            "/{id}": {*self.methods},
            "/{id}/test": {"POST"},
            "/{id}/deliveries": {"GET", "HEAD"},
            **{f"/{{id}}/{tail}": {"GET", "HEAD"} for tail in READS},
            **{f"/{{id}}/{tail}": {"POST"} for tail in VERBS},
            "/{id}/settings": {"GET", "HEAD", "PATCH"},
        }

    def verify(self, request: Received, secret: str) -> str:
        """Verify the signature of a delivery; return its timestamp."""
        name = f"X-{self.name.title()}"
        signature = request.headers[f"{name}-Signature"]
        stamp = str(request.headers[f"{name}-Timestamp"])
        signed: dict[str, Any] = {
            "signature": signature,
            "body": request.body,
            "now": int(stamp),
        }
        if self is RECORDING:
            verify_sha256(secret, timestamp=stamp, tolerance_s=5, **signed)
        else:
            verify_timestamped(secret, **signed)
        return stamp

    def id_of(self, request: Received) -> str:
        """Return the id by which receivers recognise a delivery that is repeated."""
        return str(request.headers[f"X-{self.name.title()}-Delivery"])

    def error(self, response: Any, status: int) -> str:
        """Assert the one shape of every error; return the message."""
        assert response.status_code == status, response.content
        assert response["Content-Type"] == "application/json"
        body = response.json()
        if self.codes:
            assert list(body) == ["error"]
            assert list(body["error"]) == ["code", "message"]
            assert body["error"]["code"] == self.codes[status]
            message = body["error"]["message"]
        else:
            assert list(body) == ["detail"]
            message = body["detail"]
        assert isinstance(message, str)
        assert message
        return message


@dataclass
class Caller:
    """Calls a product's subscriptions as one owner; addresses are below its path."""

    product: Product
    owner: str
    api: Any

    def call(
        self, method: str, address: str = "", body: Any = None, **options: Any
    ) -> Any:
        return self.api.call(method, self.product.path + address, body, **options)

    def in_thread(self) -> "Caller":
        """Return this caller with a client of its own."""
        other = copy(self)
        other.api = copy(self.api)
        other.api.client = Client(**self.api.client.defaults)
        return other

    def create(self, url: str = URL, **fields: Any) -> Any:
        fields = {self.product.events: [self.product.event_type]} | fields
        response = self.call("POST", "", {"url": url} | fields)
        assert response.status_code == 201, response.content
        return response.json()

    def new_id(self, **fields: Any) -> str:
        """Create a subscription; return its id."""
        return str(self.create(**fields)[self.product.id_field])

    def get(self, address: str = "") -> Any:
        response = self.call("GET", address)
        assert response.status_code == 200, response.content
        assert list(response.json()) == ["items"]
        return response.json()["items"]

    def publish(self, **data: Any) -> Any:
        return publish(
            profile=self.product.name,
            owner=self.owner,
            event_type=self.product.event_type,
            data=data,
            metadata=self.product.metadata,
        )

    @property
    def endpoints(self) -> Any:
        return Endpoint.objects.of(self.product.name, self.owner)


def _of_recording(name: str) -> Caller:
    return of_account(RecordingApi(UserFactory.create(username=name)))


def of_account(api: RecordingApi) -> Caller:
    """Return the caller that a client of recording is."""
    return Caller(RECORDING, api.owner, api)


def _of_gateway(name: str) -> Caller:
    return Caller(GATEWAY, name, GatewayApi(tenant=name, principal="ada"))


RECORDING = Product(
    name="recording",
    path="/v1/webhooks",
    prefix="ep_",
    id_field="endpoint_id",
    events="events",
    event_type="summary.completed",
    ping="webhook.ping",
    quota=5,
    methods=frozenset({"PATCH", "DELETE"}),
    caller=_of_recording,
    codes={
        400: "bad_request",
        401: "unauthorized",
        404: "not_found",
        405: "method_not_allowed",
        409: "conflict",
        410: "gone",
        413: "payload_too_large",
        415: "unsupported_media_type",
        429: "too_many_requests",
        500: "internal",
        503: "unavailable",
    },
    metadata={},
    setting="RECORDING_RATES",
    statuses=(0, 1, 2),
)
GATEWAY = Product(
    name="gateway",
    path="/v1/webhooks/subscriptions",
    prefix="whsub_",
    id_field="id",
    events="event_types",
    event_type="ingest.completed",
    ping="webhook.test",
    quota=100,
    methods=frozenset({"GET", "HEAD", "PATCH", "DELETE"}),
    caller=_of_gateway,
    codes={},
    metadata={"request_id": "r", "principal_id": "ada", "trace_id": "t"},
    setting="GATEWAY_RATES",
    statuses=("attempting", "delivered", "failed"),
)
PRODUCTS = {product.name: product for product in (RECORDING, GATEWAY)}


# What no query parameter that counts may be.
WRONG_COUNTS = [
    *("", "0", "00", "-1", "x", "1.0", "1e3", "+1", "%201", "1%20", "%00", "1%00"),
    *("%EF%BC%91", "%D9%A1", "%ED%A0%80", "%ff", "0x1", "1_0", "true", "null"),
    *("[]", "NaN"),
]
