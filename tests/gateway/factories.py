"""Rows of the gateway for tests. The text of a key comes from `gateway.keys.create`."""

from django.utils import timezone
from factory.declarations import LazyFunction, Sequence
from factory.django import DjangoModelFactory

from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from gateway.models import Document, GatewayKey, PolicyDecision, PortalLink


class GatewayKeyFactory(DjangoModelFactory[GatewayKey]):
    class Meta:
        model = GatewayKey

    tenant = "acme"
    principal = "ada"
    display_prefix = "gw_key_abcd"
    digest = Sequence(lambda n: f"{n:064x}")


class PolicyDecisionFactory(DjangoModelFactory[PolicyDecision]):
    class Meta:
        model = PolicyDecision

    public_id = Sequence(lambda n: f"decision_{n}")
    tenant = "acme"
    principal = "ada"


class DocumentFactory(DjangoModelFactory[Document]):
    """An empty document."""

    class Meta:
        model = Document

    public_id = Sequence(lambda n: f"document_{n}")
    tenant = "acme"
    principal = "ada"
    checksum = Sequence(lambda n: f"{n:064x}")
    size = characters = 0


class PortalLinkFactory(DjangoModelFactory[PortalLink]):
    """A link that has just expired. The text of a token comes from `gateway.portal.links.create`."""

    class Meta:
        model = PortalLink

    public_id = Sequence(lambda n: f"link_{n}")
    tenant = "acme"
    principal = actor = "ada"
    capabilities = ("view",)
    digest = Sequence(lambda n: f"{n:064x}")
    expires_at = LazyFunction(timezone.now)


URL = "http://127.0.0.1:9/hook"


def declared(url: str = URL, **fields) -> StaticSubscription:
    values = {"tenant_id": "acme", "url": url, "event_types": (), "secret": "s"}
    return StaticSubscription(**(values | fields))


def configured(*subscriptions: StaticSubscription, **fields) -> Configuration:
    return Configuration(WebhookSettings(subscriptions=subscriptions, **fields))
