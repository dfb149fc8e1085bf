"""Rows of the gateway for tests. The text of a key comes from `gateway.keys.create`."""

from __future__ import annotations

from factory.declarations import Sequence
from factory.django import DjangoModelFactory

from gateway.models import Document, GatewayKey, PolicyDecision


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
    allowed = False


class DocumentFactory(DjangoModelFactory[Document]):
    """An empty document."""

    class Meta:
        model = Document

    public_id = Sequence(lambda n: f"document_{n}")
    tenant = "acme"
    principal = "ada"
    checksum = Sequence(lambda n: f"{n:064x}")
    size = characters = chunk_count = 0
