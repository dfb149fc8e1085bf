"""Deadlines: a task ends in time, and only for the reason that it was given."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.running import PATIENCE_S
from webhooks_core.network.deadlines import Deadlines, within

pytestmark = pytest.mark.spec("webhooks_core", "one deadline for an attempt")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await work

    return asyncio.run(bounded())


def this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task
    return task


def deadlines() -> Deadlines:
    return Deadlines(asyncio.get_running_loop())


def test_a_block_that_takes_too_long_raises_a_timeout():
    async def work():
        with deadlines().within(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(work())


def test_a_block_that_ends_in_time_is_not_affected():
    async def work():
        kept = deadlines()
        with kept.within(PATIENCE_S) as deadline:
            await asyncio.sleep(0)
        deadline.until = 0  # it would have passed
        await asyncio.sleep(0.3)  # nothing comes after it
        return this_task().cancelling()

    assert run(work()) == 0


def test_each_task_has_its_own_deadline():
    async def wait(kept, seconds):
        with kept.within(seconds):
            await asyncio.sleep(0.4)
        return "done"

    async def work():
        kept = deadlines()
        waits = [wait(kept, 0.05), wait(kept, 60)]
        return await asyncio.gather(*waits, return_exceptions=True)

    short, long = run(work())
    assert isinstance(short, TimeoutError)
    assert long == "done"


def test_another_cancellation_remains_a_cancellation():
    async def wait(kept):
        with kept.within(60):
            await asyncio.Event().wait()

    async def work():
        task = asyncio.ensure_future(wait(deadlines()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run(work())


def test_a_cancellation_that_meets_the_deadline_is_not_swallowed():
    async def wait(kept):
        with kept.within(0.01) as deadline:
            deadline.expire()
            this_task().cancel()
            await asyncio.Event().wait()

    async def work():
        task = asyncio.ensure_future(wait(deadlines()))
        await asyncio.wait([task])
        return task.cancelled()

    assert run(work())


def test_an_error_of_the_block_itself_is_raised():
    async def work():
        with deadlines().within(60):
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        run(work())


def test_an_inner_deadline_ends_without_the_outer_one():
    async def work():
        kept = deadlines()
        with kept.within(60):
            with pytest.raises(TimeoutError), kept.within(0.01):
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        return "done"

    assert run(work()) == "done"


def test_without_an_open_deadline_there_is_no_timer():
    async def work():
        kept = deadlines()
        with kept.within(60):
            assert kept._timer
        await asyncio.sleep(0.2)
        return kept._timer

    assert run(work()) is None


def test_a_deadline_outside_of_a_task_is_refused():
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(RuntimeError), Deadlines(loop).within(1):
            pass
    finally:
        loop.close()


def test_blocks_of_one_loop_share_a_timer_and_loops_share_none():
    async def work():
        with within(5) as one, within(5) as other:
            assert one._deadlines is other._deadlines
            return one._deadlines

    assert run(work()) is not run(work())


def test_a_block_without_a_deadline_never_ends_by_itself():
    async def work():
        with within(None):
            await asyncio.sleep(0.15)
        return "done"

    assert run(work()) == "done"
