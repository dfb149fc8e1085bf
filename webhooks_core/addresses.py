"""Which network addresses a webhook may be sent to."""

from __future__ import annotations
