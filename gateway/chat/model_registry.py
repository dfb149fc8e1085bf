"""All model endpoints: the rows of the admin and the entries of the configuration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog
from django.db import Error

from gateway import configuration
from gateway.chat.models import ModelEndpoint
from gateway.configuration import EntryError
from gateway.configuration.shapes import ModelEntry
from webhooks_core.database.outages import reason
from webhooks_core.errors import UnavailableError
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.web.thread_pool import InThread

# After FRESH_S requests use the old endpoints while new ones are loaded; after STALE_S they wait.
FRESH_S = 1.0
STALE_S = 3.0
# They wait so long. Without a database, the old endpoints serve for OUTAGE_S.
WAIT_S = 5.0
OUTAGE_S = 60.0

log = structlog.stdlib.get_logger(__name__)


def load() -> dict[str, ModelEntry]:
    """Return all endpoints by name. A name in the configuration wins over a row's.

    A row that is not valid, or whose key is not available, is left out, and logged.
    """
    entries: dict[str, ModelEntry] = {}
    for row in ModelEndpoint.objects.filter(is_active=True):
        try:
            entries[row.name] = row.entry()
        except (EntryError, SecretUnreadableError) as error:
            log.error("model endpoint left out", model=row.name, reason=str(error))
    return entries | {model.name: model for model in configuration.current().models}


@dataclass(slots=True)
class ModelRegistry:
    """The result of load(), renewed every FRESH_S; `in_thread` runs it."""

    in_thread: InThread
    load: Callable[[], Mapping[str, ModelEntry]] = load
    clock: Callable[[], float] = time.monotonic
    _known: Mapping[str, ModelEntry] = field(default_factory=dict)
    _loaded_at: float = float("-inf")
    _loading: asyncio.Task[None] | None = None
    _began_at: float = 0.0

    async def endpoints(self) -> Mapping[str, ModelEntry]:
        """Return all endpoints by name. Raises UnavailableError."""
        age = self.clock() - self._loaded_at
        if age > FRESH_S and self._loading is None:
            self._loading = asyncio.create_task(self._load())
            self._began_at = self.clock()
        if age > STALE_S and self._loading is not None:
            left = self._began_at + WAIT_S - self.clock()
            # Other requests wait for it, too: no one of them ends it.
            await asyncio.wait({self._loading}, timeout=max(0.0, left))
            if self.clock() - self._loaded_at > OUTAGE_S:
                raise UnavailableError
        return self._known

    def known(self) -> Mapping[str, ModelEntry]:
        """Return the endpoints that were loaded last."""
        return self._known

    async def _load(self) -> None:
        try:
            self._known = await self.in_thread(self.load)
            self._loaded_at = self.clock()
        except Error as error:
            log.warning("model endpoints not loaded", error=reason(error))
        finally:
            self._loading = None
