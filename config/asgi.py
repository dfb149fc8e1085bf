"""The ASGI entry that `manage.py up` serves: one port for everything.

Chat and MCP run on the event loop. All the rest is synchronous Django in a fixed pool of threads, so
that each thread keeps its database connection: Django's own ASGI handler takes a fresh
thread, and a fresh connection, per request.
"""

from __future__ import annotations

import ctypes
import gc
import sys

from django.conf import settings

from config.serving.middleware_checks import security_headers
from config.serving.wsgi_bridge import Receive, Scope, Send, WSGIBridge
from config.wsgi import application as wsgi_application

# After config.wsgi, which sets Django up.
from gateway.chat import asgi as chat
from gateway.chat import runtime
from gateway.chat.http_messages import join_headers
from gateway.chat.routes import serves
from recording.mcp.asgi import MCPApplication
from webhooks_core.web.thread_pool import ThreadPool

# After this time a thread that computes lets the event loop run; Python's default is 5 ms, several
# times what a chat request takes.
SWITCH_S = 0.0005

LARGE_BODY_PATHS = ("/v1/ingest", "/admin/")
LARGE_BODY_BYTES = 32 * 1024 * 1024


def largest_body(path: str) -> int:
    """Return how many bytes of a body are received at a path; no view there accepts more."""
    is_large = path.startswith(LARGE_BODY_PATHS)
    return LARGE_BODY_BYTES if is_large else settings.DATA_UPLOAD_MAX_MEMORY_SIZE


everything_else = WSGIBridge(wsgi_application, settings.WEB_THREADS, largest_body)
# To hash a password takes a processor for a third of a second: logins wait for one another alone.
HASHES = ("/accounts/login/", "/accounts/password/", "/accounts/reauthenticate/")
logins = WSGIBridge(wsgi_application, 2, largest_body)
# Of their own, so that other requests do not wait for MCP calls, which may be many and take long.
mcp_threads = ThreadPool(settings.WEB_MCP_THREADS, name="mcp")
mcp = MCPApplication(mcp_threads.run_with_connection)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve ASGI's types http and lifespan; there are no WebSockets here."""
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    elif scope["type"] == "http":
        await _serve(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve chat and MCP here, and all the rest by Django: also what it refuses for its Host."""
    is_chat = serves(scope["path"])
    is_mcp = scope["path"] == "/mcp" and scope["method"] == "POST"
    headers = join_headers(scope["headers"]) if is_chat or is_mcp else {}
    added = security_headers(headers, scope["scheme"]) if headers else None
    if added is None:
        is_login = scope["method"] == "POST" and scope["path"].startswith(HASHES)
        bridge = logins if is_login else everything_else
        await bridge(scope, receive, send)
    elif is_chat:
        service = runtime.current().service
        await chat.respond(service, scope, headers, receive, send, added)
    else:
        await mcp(scope, receive, send, added)


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
    logins.close()
    mcp_threads.close()
    await send({"type": "lifespan.shutdown.complete"})


def _release_start_memory() -> None:
    """Free what only the start needed, and exclude what is left from garbage collection."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        # glibc keeps freed memory; other C libraries of Linux may lack this function.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
