"""The threads of event loops: what they return, and that nothing stops them but close()."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from tests.running import PATIENCE_S, until
from webhooks_core.web.thread_pool import ThreadPool


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    pool = ThreadPool(1, name="web")
    yield pool
    pool.close()


def fail() -> None:
    raise SystemExit("not this thread's to heed")


def test_the_caller_gets_what_a_function_returns_or_raises(pool: ThreadPool):
    async def work() -> str:
        with pytest.raises(SystemExit, match="not this thread's"):
            await pool.run(fail)
        return await pool.run(lambda: threading.current_thread().name)

    assert asyncio.run(work()).startswith("web-")


def test_a_cancelled_call_has_no_effect(pool: ThreadPool):
    begun, gate = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    async def work() -> str:
        given_up = asyncio.ensure_future(pool.run(wait))
        await asyncio.to_thread(begun.wait)
        given_up.cancel()
        await asyncio.wait([given_up])
        gate.set()
        return await pool.run(lambda: "next")

    assert asyncio.run(work()) == "next"


def test_a_closed_loop_does_not_stop_a_thread(pool: ThreadPool):
    begun, gate = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    async def leave() -> None:
        asyncio.ensure_future(pool.run(wait))  # noqa: RUF006 - cancelled with the loop
        await asyncio.to_thread(begun.wait)

    asyncio.run(leave())
    gate.set()

    async def work() -> str:
        return await pool.run(lambda: "next")

    assert asyncio.run(work()) == "next"


def test_an_idle_thread_keeps_no_object_alive(pool: ThreadPool):
    class Thing:
        def name(self) -> str:
            return "thing"

    async def work(thing: Thing) -> str:
        return await pool.run(thing.name)

    thing = Thing()
    there = weakref.ref(thing)
    assert asyncio.run(work(thing)) == "thing"
    del thing
    until(lambda: gc.collect() >= 0 and there() is None, "the end of the thing")


def test_closing_ends_the_threads_after_what_is_queued():
    others, done = set(threading.enumerate()), []
    pool = ThreadPool(2, name="web")

    async def work() -> None:
        await pool.run(lambda: done.append(1))

    asyncio.run(work())
    mine = set(threading.enumerate()) - others
    assert {thread.name for thread in mine} == {"web-0", "web-1"}
    pool.close(wait_s=PATIENCE_S)
    assert done == [1]
    assert not any(thread.is_alive() for thread in mine)
