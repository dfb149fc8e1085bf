"""The client of the APIs: one class; recording and the gateway add who calls, and their addresses."""

from collections.abc import Mapping
from typing import Any

import orjson

from tests.documented import DocumentedClient


class Api:
    """Calls with these headers; each response is compared with the OpenAPI document."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self.client = DocumentedClient(headers=headers, raise_request_exception=False)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a body: bytes as they are, anything else as JSON."""
        if not isinstance(body, bytes):
            body = b"" if body is None else orjson.dumps(body)
        options = {"content_type": "application/json"} | options
        return self.client.generic(method, path, body, **options)
