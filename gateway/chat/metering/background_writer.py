"""The background writer of one event loop: requests and denials, after the responses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

import structlog
from django.db import transaction

from gateway.chat.context import ChatContext
from gateway.chat.metering import usage
from gateway.policy import record_denial
from gateway.trace_ids import trace_id
from webhooks_core.database.outages import is_outage, reason
from webhooks_core.web.thread_pool import InThread

# The larger a batch of requests, the cheaper is each of them. Denials become events: of these alone
# the last 100 ms may be lost with the process.
EVERY_S, DENIALS_S = 0.5, 0.1
RETRY_S = 2.0
BATCH = 1000
# How many are kept without a database; then the oldest are lost, counted and logged.
KEPT = 100_000
# Above so many characters of prompts and answers that wait, the next requests are kept without.
TEXTS_KEPT = 20_000_000
CLOSING_S = 10.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class UsageWriter:
    """Keeps requests that have ended until a task of the loop writes them through `in_thread`."""

    in_thread: InThread
    write: Callable[[Sequence[ChatContext]], None] = usage.write
    write_denial: Callable[..., Any] = record_denial
    lost: int = 0
    _ended: deque[ChatContext] = field(default_factory=deque)
    _texts: int = 0  # characters of those that wait or are being written
    _denials: deque[dict[str, Any]] = field(default_factory=deque)
    _has_work: asyncio.Event = field(default_factory=asyncio.Event)
    _is_urgent: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _is_stopping: bool = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def record(self, context: ChatContext) -> None:
        """Keep what a request has used."""
        if context.log:
            self._texts += context.log.size
            if self._texts > TEXTS_KEPT // 2:
                self._is_urgent.set()
            if self._texts > TEXTS_KEPT:
                log.warning("texts of a request dropped", request_id=context.request_id)
                self._texts -= context.log.size
                context.log = None
        self._keep(self._ended, context)

    def deny(self, context: ChatContext, reason: str) -> None:
        """Keep a denial for the policy writer."""
        denial = {
            "caller": context.caller,
            "action": context.operation.action,
            "resource": f"model:{context.request.model[:255]}",
            "reason": reason,
            "request_id": context.request_id,
            "trace_id": trace_id(context.traceparent),
        }
        self._keep(self._denials, denial)
        self._is_urgent.set()

    def _keep(self, queue: deque[Any], item: Any) -> None:
        queue.append(item)
        self._has_work.set()
        if len(queue) > KEPT:
            queue.popleft()
            self.lost += 1

    async def _run(self) -> None:
        while not self._is_stopping:
            await self._has_work.wait()
            self._has_work.clear()
            await self._wait()
            if not await self.flush():
                self._has_work.set()
                await asyncio.sleep(RETRY_S)

    async def _wait(self) -> None:
        """Let a batch grow, which denials do not wait for, and texts not when they are many."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EVERY_S):
                await self._is_urgent.wait()
                self._is_urgent.clear()
                if self._denials:
                    await asyncio.sleep(DENIALS_S)

    async def flush(self) -> bool:
        """Write all that is kept now; return False if the database is unavailable.

        What is added meanwhile waits for the next time: written at once, batches were small and
        took a tenth of the process.
        """
        for _ in range(ceil(max(len(self._denials), len(self._ended)) / BATCH)):
            if not (
                await self._write_batch(self._denials, self._write_denials)
                and await self._write_batch(self._ended, self.write)
            ):
                return False
            self._texts = sum(each.log.size for each in self._ended if each.log)
        return True

    async def _write_batch(
        self, queue: deque[Any], write: Callable[[Sequence[Any]], None]
    ) -> bool:
        """Write a batch; return False if the database is unavailable.

        A batch that is refused is written in halves, so that only invalid rows are lost.
        """
        batch = [queue.popleft() for _ in range(min(len(queue), BATCH))]
        parts = [batch] if batch else []
        refused: list[Exception] = []
        try:
            while parts:
                try:
                    await self.in_thread(partial(write, parts[-1]))
                    parts.pop()
                except Exception as error:  # no value may stop the writer
                    if is_outage(error):
                        log.warning("usage not written yet", error=reason(error))
                        break
                    part = parts.pop()
                    if middle := len(part) // 2:
                        parts += [part[middle:], part[:middle]]
                    else:
                        refused.append(error)
        finally:  # also when stop() has waited long enough, and counts what is lost
            for part in parts:
                queue.extendleft(reversed(part))
        if refused:
            self.lost += len(refused)
            log.error("usage lost", count=len(refused), exc_info=refused[0])
        return not parts

    def _write_denials(self, denials: Sequence[dict[str, Any]]) -> None:
        with transaction.atomic():
            for denial in denials:
                self.write_denial(**denial)

    async def stop(self) -> None:
        """Write what is kept and end. Logs what cannot be written in time."""
        self._is_stopping = True
        self._has_work.set()
        self._is_urgent.set()
        try:
            async with asyncio.timeout(CLOSING_S):
                if self._task is not None:
                    await self._task
                await self.flush()
        except TimeoutError:
            log.warning("usage lost", count=len(self._denials) + len(self._ended))
