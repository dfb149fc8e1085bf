"""A client of the gateway for tests, and questions about what it left behind."""

from typing import Any

import stripe
from django.core.files.uploadedfile import SimpleUploadedFile

from gateway.models import Document
from tests.api import Api as BaseApi
from tests.receiver import Received
from webhooks_core.models import Delivery, Event

PATH = "/v1/webhooks/subscriptions"
INGEST = "/v1/ingest"
EVENTS = "/v1/events"
JSON = "application/json"


class Api(BaseApi):
    """Calls the gateway as one principal of one tenant, or with a key."""

    def __init__(self, *, tenant: str = "", principal: str = "", key: str = "") -> None:
        named = {"X-Tenant-Id": tenant, "X-Principal-Id": principal}
        super().__init__({"Authorization": f"Bearer {key}"} if key else named)

    def create(self, url: str = "http://127.0.0.1:9/hook", **fields: Any) -> Any:
        response = self.call("POST", PATH, {"url": url} | fields)
        assert response.status_code == 201, response.content
        return response.json()

    def get(self, path: str = "", status: int = 200) -> Any:
        response = self.call("GET", f"{PATH}{path}")
        assert response.status_code == status, response.content
        return response.json()

    def patch(self, subscription: Any, status: int = 200, /, **fields: Any) -> Any:
        response = self.call("PATCH", f"{PATH}/{subscription['id']}", fields)
        assert response.status_code == status, response.content
        return response.json()

    def deliveries(self, subscription: Any, query: str = "") -> Any:
        return self.get(f"/{subscription['id']}/deliveries{query}")["items"]

    def test(self, subscription: Any) -> Any:
        return self.call("POST", f"{PATH}/{subscription['id']}/test")

    def ingest(self, text: str = "A text.", **fields: Any) -> Any:
        return self.call("POST", INGEST, {"text": text} | fields)

    def publish(self, body: Any, query: str = "", **extra: Any) -> Any:
        return self.call("POST", f"{EVENTS}{query}", body, **extra)


def stripe_accepts(
    request: Received, secret: str, *, tolerance: int | None = 300
) -> bool:
    signature = request.headers["X-Gateway-Signature"]
    verify = stripe.WebhookSignature.verify_header
    try:
        return bool(verify(request.body.decode(), signature, secret, tolerance))
    except stripe.SignatureVerificationError:
        return False


def nothing_stored() -> bool:
    """Return True if no document and no event exists."""
    return not any(table.objects.exists() for table in (Document, Event, Delivery))


def upload(
    content: bytes = b"x", name: str = "a.txt", kind: str = "text/plain"
) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, kind)
