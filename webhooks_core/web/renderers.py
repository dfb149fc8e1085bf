"""Render every response as JSON, for any `Accept` header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class JSONRenderer(BaseRenderer):
    """Renders JSON; None is an empty body."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


class IgnoreAccept(BaseContentNegotiation):
    """Selects the parser by media type, and JSON for every response, for any `Accept` header."""

    def select_parser(
        self, request: Request, parsers: Iterable[BaseParser]
    ) -> BaseParser | None:
        media_type = request.content_type.partition(";")[0].strip().lower()
        matches = (parser for parser in parsers if parser.media_type == media_type)
        return next(matches, None)

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return JSONRenderer(), JSONRenderer.media_type
