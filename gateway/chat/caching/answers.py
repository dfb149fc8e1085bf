"""The cache of one event loop. What fails here never fails a request: it is asked of the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from gateway.chat.caching.slots import Slot, slot_of
from gateway.chat.caching.stores import Store
from gateway.chat.core import off_loop
from gateway.chat.core.context import CLIENT_GONE, SUCCESS, ChatContext
from gateway.chat.metering.budget_stores import StoreUnavailableError
from gateway.chat.operations.base import Operation

READ_S = 1.0
# After a failure nothing is read or kept for so long: each request would wait for it.
PAUSE_S = 5.0
# How many answers wait for the table; one more is not kept.
WAITING = 100
CLOSING_S = 5.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class AnswerCache:
    """Finds and keeps whole answers that succeeded."""

    store: Store
    clock: Callable[[], float] = time.monotonic
    _paused_until: float = float("-inf")
    _keeping: set[asyncio.Task[None]] = field(default_factory=set)

    async def find(self, context: ChatContext, operation: Operation) -> Slot | None:
        """Return the slot of a request, with its answer if one is kept."""
        size = context.request.size
        slot = await off_loop.run(slot_of, context, operation, size=size)
        if slot is None or self.clock() < self._paused_until:
            return slot
        try:
            async with asyncio.timeout(READ_S):
                slot.body = await self.store.read(slot)
        except (StoreUnavailableError, TimeoutError) as error:
            self._pause(error)
        return slot

    def keep(self, context: ChatContext, body: bytes) -> None:
        """Keep the answer of a request in its slot, after the response."""
        slot: Slot | None = context.cache
        if slot is None or slot.body is not None or len(self._keeping) >= WAITING:
            return
        # The answer of a fallback is not that of the model.
        is_of_model = context.endpoint.name == slot.model
        if is_of_model and len(body) <= slot.settings.max_bytes:
            task = asyncio.create_task(self._keep(slot, body))
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)

    async def _keep(self, slot: Slot, body: bytes) -> None:
        if self.clock() < self._paused_until:
            return
        try:
            await self.store.write(slot, body)
        except StoreUnavailableError as error:
            self._pause(error)

    async def watch(
        self, context: ChatContext, parts: AsyncGenerator[bytes]
    ) -> AsyncGenerator[bytes]:
        """Yield the parts of a stream, and keep them if it is complete and succeeded."""
        kept, size, most = [], 0, context.cache.settings.max_bytes
        async with aclosing(parts):
            async for part in parts:
                size += len(part)
                if size <= most:
                    kept.append(part)
                else:
                    kept.clear()
                yield part
        has_succeeded = context.status == SUCCESS and not context.error_status
        if has_succeeded and not context.ending and size <= most:
            self.keep(context, b"".join(kept))

    def _pause(self, error: Exception) -> None:
        log.warning("answers not cached", error=str(error) or type(error).__name__)
        self._paused_until = self.clock() + PAUSE_S

    async def stop(self) -> None:
        """Wait for the answers that are being kept."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=CLOSING_S)


async def replayed(
    context: ChatContext, end: Callable[[ChatContext, int], None]
) -> AsyncGenerator[bytes]:
    """Yield a stream as it was kept. In every case this calls `end`."""
    try:
        yield context.cache.body
        end(context, SUCCESS)
    finally:
        end(context, CLIENT_GONE)
