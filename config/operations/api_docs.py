"""The API reference: the OpenAPI document, and a page that shows it and sends requests."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import etag, require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularSwaggerSplitView


def openapi() -> str:
    """Return the OpenAPI document of the REST API as JSON."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    return OpenApiJsonRenderer().render(schema).decode() + "\n"


@cache
def _document() -> tuple[bytes, str]:
    """Return the document and its entity tag; they are constant in a process."""
    document = openapi().encode()
    return document, f'"{sha256(document).hexdigest()[:32]}"'


@csrf_exempt
@require_safe
@cache_control(no_cache=True)
@etag(lambda _request: _document()[1])
def document(_request: HttpRequest) -> HttpResponse:
    """Serve the bytes of docs/api/openapi.json."""
    return HttpResponse(_document()[0], content_type="application/json")


# No inline script, as the Content-Security-Policy demands: the page loads its start script.
page = SpectacularSwaggerSplitView.as_view(
    url="/openapi.json", template_name="docs.html", title="Signpost: API reference"
)
