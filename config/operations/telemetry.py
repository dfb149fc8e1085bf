"""OpenTelemetry: spans of requests, and the exporter. Imported only when it is enabled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from config.environment import is_loopback
from config.operations import own_requests
from webhooks_core import tracing

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError as error:
    raise ImproperlyConfigured(
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed: install "
        "requirements/production-otel.lock in place of production.lock, or unset the variable."
    ) from error

FLUSH_S = 2.0


def start(endpoint: str) -> None:
    """Send spans to a collector; the library reads the other `OTEL_*` variables.

    A collector on this machine is called directly: a proxy of the environment cannot reach it.
    """
    is_local = is_loopback(urlsplit(endpoint).hostname or "")
    session = own_requests.session() if is_local else None
    exporter = OTLPSpanExporter(f"{endpoint}/v1/traces", session=session)
    trace_with(BatchSpanProcessor(exporter))


def trace_with(processor: SpanProcessor) -> None:
    # SERVICE_NAME is a default: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    name = Resource({SERVICE_NAME: "signpost"}).merge(Resource.create())
    provider = TracerProvider(resource=name)
    provider.add_span_processor(processor)
    tracing.switch_on(provider.get_tracer("signpost"), flush=lambda: _flush(provider))


def _flush(provider: TracerProvider) -> None:
    """Flush for at most FLUSH_S: the library would wait for an unavailable collector."""
    flushing = threading.Thread(target=provider.force_flush, daemon=True)
    flushing.start()
    flushing.join(FLUSH_S)


class TracingMiddleware:
    """Opens a span per request, in the trace of its `traceparent`.

    The request gets the span's own `traceparent`, so that its events have the trace of the span.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        tracer = tracing.tracer()
        with tracer.start_as_current_span(
            str(request.method),
            context=tracing.extracted(request.headers.get("traceparent", "")),
            kind=trace.SpanKind.SERVER,
        ) as span:
            if traceparent := tracing.injected().get("traceparent"):
                request.META["HTTP_TRACEPARENT"] = traceparent
                del request.headers  # a cache of META
            response = self.get_response(request)
            if match := request.resolver_match:
                span.update_name(f"{request.method} /{match.route}")
                span.set_attribute("http.route", f"/{match.route}")
            span.set_attribute("http.request.method", str(request.method))
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= 500:
                span.set_status(trace.StatusCode.ERROR)
        return response
