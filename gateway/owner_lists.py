"""Where the admin lists what a tenant has beside its webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.urls import reverse

LISTS = {
    "Keys": "gateway_gatewaykey",
    "Portal links": "gateway_portallink",
    "Documents": "gateway_document",
    "Policy decisions": "gateway_policydecision",
    "Usage by day": "gateway_chat_usageday",
    "Alert address": "gateway_tenantalerts",
}


def lists(tenant: str) -> Mapping[str, str]:
    """Return the addresses of these lists, by name."""
    query = urlencode({"q": tenant})
    return {
        name: f"{reverse(f'admin:{page}_changelist')}?{query}"
        for name, page in LISTS.items()
    }
