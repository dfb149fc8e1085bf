"""Gateway keys, policy decisions and ingested documents."""

from __future__ import annotations

from gateway.models.decisions import PolicyDecision
from gateway.models.documents import Chunk, Document
from gateway.models.keys import GatewayKey

__all__ = ["Chunk", "Document", "GatewayKey", "PolicyDecision"]
