"""publish(): an event and its deliveries, in the caller's transaction."""

from __future__ import annotations
