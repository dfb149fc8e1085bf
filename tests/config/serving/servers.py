"""Servers of the class that serves the project, in threads of the tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from config.serving import server
from config.serving.wsgi_bridge import WSGIBridge
from tests.running import until


@contextmanager
def served(application) -> Iterator[str]:
    listener = server.listen("127.0.0.1", 0)
    running = uvicorn.Server(server.configuration(application))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: running.started, "the start of the server")
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        running.should_exit = True
        thread.join()


def bridge_to(application, *, threads: int = 1, largest: int = 8_000_000) -> WSGIBridge:
    return WSGIBridge(application, threads, lambda _: largest)


@contextmanager
def bridged(application, **options: int) -> Iterator[str]:
    """Serve a WSGI application through the bridge."""
    bridge = bridge_to(application, **options)
    with served(with_lifespan(bridge)) as url:
        yield url
    bridge.close()


def with_lifespan(application):
    """Return an ASGI application that serves HTTP, with a lifespan that does nothing."""

    async def serve(scope, receive, send):
        if scope["type"] == "http":
            return await application(scope, receive, send)
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})

    return serve
