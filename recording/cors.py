"""Let scripts of any site call what only a token or a client's authentication opens.

No cookie counts at these addresses, and the answers forbid credentials by naming `*`: another site
gets nothing here that it could not get from a machine of its own. Pages of the account, the consent
page above all, stay closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.http import HttpResponse

# What a client has to read: the challenge, when to come back, what to report.
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After, X-Request-Id",
}
Answer = TypeVar("Answer", bound=HttpResponse)


def with_cors(answer: Answer, *, methods: Sequence[str] = ()) -> Answer:
    """Let any site read an answer; that to OPTIONS also allows these methods, and any header."""
    headers = dict(CORS_HEADERS)
    if methods:
        headers |= {
            "Access-Control-Allow-Methods": ", ".join(methods),
            # The star does not stand for Authorization (Fetch, "CORS-preflight fetch").
            "Access-Control-Allow-Headers": "*, Authorization",
            "Access-Control-Max-Age": "86400",
        }
    for name, value in headers.items():
        answer[name] = value
    return answer
