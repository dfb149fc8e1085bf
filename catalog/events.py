"""Events on the catalogue's changes."""

from __future__ import annotations

from typing import Any

from catalog.conf import option


def publish_change(event_type: str, key: int, **data: Any) -> None:
    """Publish a change in the caller's transaction, if CATALOG_EVENTS is on."""
    if option("CATALOG_EVENTS"):
        # Imported here, so that without events the catalogue runs without webhooks_core.
        from catalog import webhooks

        webhooks.publish(event_type, {"id": str(key), **data})
