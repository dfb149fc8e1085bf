"""What a product tells the engine about its webhooks."""

from __future__ import annotations
