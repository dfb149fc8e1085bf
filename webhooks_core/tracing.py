"""OpenTelemetry, once it is switched on: one trace from publish() to every attempt.

Before `switch_on()` nothing is imported, stored or sent. An event's trace is a row of its own, so
that an untraced event does not pay for a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from webhooks_core.models import Event, Trace
from webhooks_core.network.outcomes import Outcome

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    from webhooks_core.network.transport import AttemptResult, OutgoingRequest

_tracer: Tracer | None = None
_flush: Callable[[], object] = bool
# The spans of open attempts, by delivery: one thread starts them, another ends them.
_open: dict[int, Span] = {}


def switch_on(tracer: Tracer, *, flush: Callable[[], object] = bool) -> None:
    """Trace with this tracer from now on; `flush` exports the spans that have ended."""
    global _tracer, _flush
    _tracer, _flush = tracer, flush


def switch_off() -> None:
    global _tracer, _flush
    _tracer, _flush = None, bool
    _open.clear()


def tracer() -> Tracer:
    """Return the tracer. Raises RuntimeError if tracing is switched off."""
    if _tracer is None:
        raise RuntimeError("Tracing is not switched on.")
    return _tracer


def flush() -> None:
    """Export what has ended: the process may be replaced before its exporter's next turn."""
    _flush()


@contextmanager
def publishing(profile: str, event_type: str) -> Iterator[None]:
    """A span around storing an event and its deliveries, in the caller's trace."""
    if _tracer is None:
        yield
        return
    from opentelemetry.trace import SpanKind

    attributes = {"signpost.profile": profile, "signpost.event.type": event_type}
    with _tracer.start_as_current_span(
        f"publish {event_type}", kind=SpanKind.PRODUCER, attributes=attributes
    ):
        yield


def store_parent(event: Event) -> None:
    """Store the current span with an event, as the parent of its attempts."""
    if _tracer is None:
        return
    from opentelemetry.trace import get_current_span

    get_current_span().set_attribute("signpost.event.id", event.public_id)
    if traceparent := injected().get("traceparent"):  # OTEL_SDK_DISABLED leaves none
        Trace.objects.create(event=event, traceparent=traceparent)


def parents(events: Mapping[int, int]) -> Mapping[int, str]:
    """Return the traceparents of deliveries; `events` maps each delivery to its event."""
    if _tracer is None or not events:
        return {}
    rows = Trace.objects.filter(event__in=set(events.values()))
    by_event = dict(rows.values_list("event", "traceparent"))
    return {pk: by_event.get(event, "") for pk, event in events.items()}


def trace(
    requests: list[OutgoingRequest], parents: Mapping[int, str]
) -> list[OutgoingRequest]:
    """Let each request start a span when it is signed."""
    if not parents:
        return requests
    return [
        request._replace(sign=partial(_sign, request, parents[request.key]))
        for request in requests
    ]


def _sign(request: OutgoingRequest, parent: str, timestamp: int) -> Mapping[str, str]:
    """Start the attempt's span, sign, and name the span to the receiver."""
    from opentelemetry.trace import SpanKind, set_span_in_context

    headers = request.sign(timestamp)
    if _tracer is None:  # switched off since the claim
        return headers
    span = _tracer.start_span(
        "deliver",
        context=extracted(parent),
        kind=SpanKind.CLIENT,
        attributes={"signpost.delivery": request.delivery_id},
    )
    _open[request.key] = span
    return injected(set_span_in_context(span)) | dict(headers)


def end(results: Iterable[AttemptResult]) -> None:
    """End the spans of attempts whose results are written."""
    if not _open:
        return
    for result in results:
        if span := _open.pop(result.key, None):
            _end(span, result)


def _end(span: Span, result: AttemptResult) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("signpost.outcome", str(result.outcome))
    if result.status_code is not None:
        span.set_attribute("http.response.status_code", result.status_code)
    if result.outcome != Outcome.OK:
        span.set_status(StatusCode.ERROR, result.error)
    ended_at = result.started_at.timestamp() + result.duration_ms / 1000
    span.end(end_time=int(ended_at * 1e9))


def extracted(traceparent: str) -> Context:
    """Return the context of a `traceparent`; a root context if it is empty."""
    from opentelemetry.context import Context

    return _propagator().extract({"traceparent": traceparent}, context=Context())


def injected(context: Context | None = None) -> dict[str, str]:
    """Return the headers that name a context's span, by default the current one."""
    carrier: dict[str, str] = {}
    _propagator().inject(carrier, context)
    return carrier


def _propagator() -> TraceContextTextMapPropagator:
    from opentelemetry.trace.propagation import tracecontext

    return tracecontext.TraceContextTextMapPropagator()
