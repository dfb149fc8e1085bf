"""The ASGI entry that `manage.py up` serves: one port for everything.

Chat runs on the event loop. All the rest is synchronous Django in a fixed pool of threads, so
that each thread keeps its database connection: Django's own ASGI handler takes a fresh
thread, and a fresh connection, per request.
"""

from __future__ import annotations

import ctypes
import gc
import sys

from django.conf import settings

from config.serving import middleware_checks
from config.serving.bodies import Bodies, Receive
from config.serving.wsgi_bridge import Scope, Send, WSGIBridge, WSGIBridgeWithTurns
from config.wsgi import application as wsgi_application

# After config.wsgi, which sets Django up.
from gateway.chat import asgi as chat
from gateway.chat import runtime
from gateway.chat.routes import serves
from recording.authentication import ACCOUNT_KEY

# After this time a thread that computes lets the event loop run; Python's default is 5 ms, several
# times what a chat request takes.
SWITCH_S = 0.0005

LARGE_BODY_PATHS = ("/v1/ingest", "/admin/")
LARGE_BODY_BYTES = 32 * 1024 * 1024


def largest_body(path: str) -> int:
    """Return how many bytes of a body are received at a path; no view there accepts more."""
    is_large = path.startswith(LARGE_BODY_PATHS)
    return LARGE_BODY_BYTES if is_large else settings.DATA_UPLOAD_MAX_MEMORY_SIZE


bodies = Bodies()
everything_else = WSGIBridge(
    wsgi_application,
    threads=settings.WEB_THREADS,
    bodies=bodies,
    largest_body=largest_body,
)
# Of its own, so that other requests do not wait for MCP calls, which may be many and take long.
mcp = WSGIBridgeWithTurns(
    wsgi_application,
    threads=settings.WEB_MCP_THREADS,
    bodies=bodies,
    largest_body=largest_body,
    account_key=ACCOUNT_KEY,
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve ASGI's types http and lifespan; there are no WebSockets here."""
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    elif (
        scope["type"] == "http"
        and serves(scope["path"])
        and (headers := middleware_checks.security_headers(scope)) is not None
    ):
        service = runtime.current().service
        await chat.respond(service, scope, receive, send, headers)
    elif scope["type"] == "http" and scope["path"] == "/mcp":
        await mcp(scope, receive, send)
    elif scope["type"] == "http":
        await everything_else(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _run_lifespan(receive: Receive, send: Send) -> None:
    """Start the chat service; at the end, write its usage and close its connections."""
    await receive()
    runtime.current()
    sys.setswitchinterval(SWITCH_S)
    _release_start_memory()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await runtime.stop()
    everything_else.close()
    mcp.close()
    await send({"type": "lifespan.shutdown.complete"})


def _release_start_memory() -> None:
    """Free what only the start needed, and exclude what is left from garbage collection."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        # glibc keeps freed memory; other C libraries of Linux may lack this function.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
