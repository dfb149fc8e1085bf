"""Deadlines: a task ends in time, and only for the reason that it was given."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.running import PATIENCE_S
from webhooks_core.network.deadlines import Deadlines, within


def run(work: Callable[[Deadlines], Coroutine[Any, Any, Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await work(Deadlines(asyncio.get_running_loop()))

    return asyncio.run(bounded())


def this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task
    return task


async def wait(kept: Deadlines, seconds: float) -> None:
    with kept.within(seconds):
        await asyncio.Event().wait()


async def is_cancelled(task: asyncio.Task[None]) -> bool:
    await asyncio.wait([task])
    return task.cancelled()


def test_a_block_that_ends_in_time_is_not_affected_and_leaves_no_timer():
    async def work(kept):
        with kept.within(60) as deadline:
            assert kept._timer
        deadline.until = 0  # it would have passed
        await asyncio.sleep(0.3)
        return this_task().cancelling(), kept._timer

    assert run(work) == (0, None)


def test_another_cancellation_remains_a_cancellation():
    async def work(kept):
        task = asyncio.ensure_future(wait(kept, 60))
        await asyncio.sleep(0)
        task.cancel()
        return await is_cancelled(task)

    assert run(work)


def test_a_cancellation_that_meets_the_deadline_is_not_swallowed():
    async def meet(kept):
        with kept.within(60) as deadline:
            deadline.expire()
            this_task().cancel()
            await asyncio.Event().wait()

    async def work(kept):
        return await is_cancelled(asyncio.ensure_future(meet(kept)))

    assert run(work)


def test_an_inner_deadline_ends_without_the_outer_one():
    async def work(kept):
        with kept.within(60):
            with pytest.raises(TimeoutError):
                await wait(kept, 0.01)
            await asyncio.sleep(0)
        return "done"

    assert run(work) == "done"


def test_a_deadline_outside_of_a_task_is_refused():
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(RuntimeError), Deadlines(loop).within(1):
            pass
    finally:
        loop.close()


def test_blocks_of_one_loop_share_a_timer_and_loops_share_none():
    async def work(_):
        with within(5) as one, within(None) as other:
            assert one._deadlines is other._deadlines
            await asyncio.sleep(0.15)  # the other one never ends by itself
            return one._deadlines

    assert run(work) is not run(work)
