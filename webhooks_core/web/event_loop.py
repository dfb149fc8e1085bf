"""What a synchronous view lets the event loop of its server do, by keys of WSGI's environ.

A server that offers this sets `OFFERED`. Other servers ignore the keys.
"""

from __future__ import annotations

OFFERED = "signpost.event_loop"
# Set by a view: a function that returns an awaitable. The response is dropped, and once the result
# is there, the request runs again with the result at `RESULT`.
WORK = "signpost.work"
RESULT = "signpost.result"
