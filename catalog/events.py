"""Events on the catalogue's changes."""

from __future__ import annotations

from typing import Any

from graphene.utils.str_converters import to_camel_case

from catalog.conf import option


def publish_change(event_type: str, key: int, **columns: Any) -> None:
    """Publish a change in the caller's transaction, if CATALOG_EVENTS is on.

    The event names the columns as the API does.
    """
    if option("CATALOG_EVENTS"):
        # Imported here, so that without events the catalogue runs without webhooks_core.
        from catalog import webhooks

        fields = {to_camel_case(name): value for name, value in columns.items()}
        webhooks.publish(event_type, {"id": str(key), **fields})
