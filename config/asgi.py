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

from config.operations import stream_probe
from config.serving import front
from config.serving.wsgi_bridge import Receive, Scope, Send, WSGIBridge
from config.wsgi import application as wsgi_application

# After config.wsgi, which sets Django up.
from gateway.chat import asgi as chat
from gateway.chat import runtime
from gateway.chat.service import serves

everything_else = WSGIBridge(wsgi_application, threads=settings.WEB_THREADS)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve ASGI's types http and lifespan; there are no WebSockets here."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    elif scope["type"] == "http" and serves(scope["path"]) and front.admits(scope):
        service = runtime.current().service
        headers = front.security_headers(scope)
        await chat.respond(service, scope, receive, send, headers)
    elif stream_probe.serves(scope) and front.is_for_us(scope):
        await stream_probe.respond(scope, send)
    elif scope["type"] == "http":
        await everything_else(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _live(receive: Receive, send: Send) -> None:
    """Open the chat service's connections at start; write and close what is open at the end."""
    await receive()
    runtime.current()
    _settle()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await runtime.stop()
    everything_else.close()
    await send({"type": "lifespan.shutdown.complete"})


def _settle() -> None:
    """Give back what starting left over, and never look at what was imported again."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        # glibc keeps what was freed; elsewhere in Linux there may be no such function.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
