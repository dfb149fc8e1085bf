"""One trace from a request to each attempt, and nothing at all where tracing is off."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from config.operations import telemetry
from tests.config.operations.test_health import no_database
from tests.e2e.starting import STRANGE
from tests.gateway.client import INGEST, Api
from tests.receiver import receiver
from tests.running import INHERITED, ROOT
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    timed_out,
    untried,
)
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import tracing
from webhooks_core.models import Delivery, Trace

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture
def spans():
    """What was traced, as it ends."""
    exporter = InMemorySpanExporter()
    telemetry.trace_with(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    tracing.switch_off()


@pytest.fixture
def traced(settings, spans):
    settings.MIDDLEWARE = [
        "config.operations.telemetry.TracingMiddleware",
        *settings.MIDDLEWARE,
    ]
    return spans


def hexadecimal(context) -> tuple[str, str]:
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_a_trace_goes_from_the_request_to_each_attempt_and_its_receiver(
    transactional_db, traced
):
    acme = Api(tenant="acme", principal="ada")
    with receiver(500, 204) as hook:
        acme.create(hook.url)
        acme.call("POST", INGEST, {"text": "A."}, headers={"traceparent": TRACEPARENT})
        dispatch(linger=timedelta(seconds=2))
    ours = [span for span in traced() if hexadecimal(span.context)[0] == TRACE]
    request, publish, failed, delivered = sorted(ours, key=lambda span: span.start_time)
    assert hexadecimal(request.parent) == (TRACE, CALLER)
    assert (request.name, request.kind) == ("POST /v1/ingest", SpanKind.SERVER)
    assert request.attributes["http.response.status_code"] == 201
    assert publish.name == "publish ingest.completed"
    assert publish.parent.span_id == request.context.span_id
    for span, status in ((failed, 500), (delivered, 204)):
        assert (span.name, span.kind) == ("deliver", SpanKind.CLIENT)
        assert span.parent.span_id == publish.context.span_id
        assert span.attributes["http.response.status_code"] == status
        assert span.attributes["signpost.delivery"] == Delivery.objects.get().public_id
    assert failed.status.status_code == StatusCode.ERROR
    assert failed.attributes["signpost.outcome"] == "http"
    assert delivered.status.is_ok
    traceparents = [received.headers["traceparent"] for received in hook.requests]
    assert traceparents == [
        f"00-{'-'.join(hexadecimal(span.context))}-01" for span in (failed, delivered)
    ]


def test_an_events_trace_id_is_that_of_its_span(transactional_db, traced):
    acme = Api(tenant="acme", principal="ada")
    with receiver(204) as hook:
        acme.create(hook.url)
        acme.ingest()
        dispatch()
    [request] = [span for span in traced() if span.name == "POST /v1/ingest"]
    assert hexadecimal(request.context)[0].encode() in hook.requests[0].body
    assert request.parent is None


def test_a_request_that_fails_is_an_error_and_an_unknown_address_has_no_route(
    client, db, traced
):
    client.raise_request_exception = False
    with no_database():
        client.get("/readyz")
    client.get("/made-up-by-a-stranger")
    failed, unknown = traced()
    assert failed.status.status_code == StatusCode.ERROR
    assert unknown.name == "GET"
    assert "stranger" not in unknown.to_json()


def test_an_event_before_tracing_begins_a_trace_at_its_attempt(
    transactional_db, plain, request
):
    with receiver(204) as hook:
        EndpointFactory.create(url=hook.url)
        publish_event()
        spans = request.getfixturevalue("spans")
        dispatch()
    [attempt] = spans()
    assert attempt.parent is None


def test_only_attempts_that_were_made_have_spans(transactional_db, plain, spans):
    EndpointFactory.create()
    publish_event()
    publish_event()
    dispatcher = SteppedDispatcher()
    one, other = dispatcher.claim()
    one.sign(0)
    dispatcher.record([one, other], timed_out, untried)
    [attempt] = [span for span in spans() if span.name == "deliver"]
    assert attempt.attributes["signpost.outcome"] == "timeout"
    assert "http.response.status_code" not in attempt.attributes


def test_an_attempt_that_was_claimed_before_tracing_ended_is_sent(
    transactional_db, plain, spans
):
    with receiver(204) as hook:
        EndpointFactory.create(url=hook.url)
        publish_event()
        dispatcher = SteppedDispatcher()
        [request] = dispatcher.claim()
        tracing.switch_off()
        assert "traceparent" not in request.sign(0)


def test_without_tracing_nothing_is_stored_or_sent(transactional_db, plain):
    with receiver(204) as hook:
        EndpointFactory.create(url=hook.url)
        publish_event()
        dispatch()
    assert not Trace.objects.exists()
    assert "traceparent" not in {name.lower() for name in hook.requests[0].headers}
    with pytest.raises(RuntimeError):
        tracing.tracer()


@pytest.mark.slow
def test_without_the_packages_everything_else_works():
    ran = run(
        SETUP.format(before="sys.modules['opentelemetry'] = None")
        + "import config.urls, webhooks_core.tasks\n"
        "from webhooks_core import tracing\n"
        "with tracing.publishing('plain', 'thing.made'): tracing.flush()"
    )
    assert ran.returncode == 0, ran.stderr


def run(program, **environment):
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "LOG_LEVEL": "ERROR"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={name: os.environ[name] for name in INHERITED if name in os.environ}
        | settings
        | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


SETUP = "import django, sys; {before}; django.setup(); "


@pytest.mark.slow
def test_the_variable_enables_tracing_and_spans_reach_the_collector_past_any_proxy():
    program = SETUP.format(before="0") + (
        "from webhooks_core import tracing\n"
        "with tracing.publishing('plain', 'thing.made'): pass\n"
        "tracing.flush()"
    )
    with receiver(200) as hook:
        collector = hook.url.removesuffix("/hook")
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{collector}/"}
        ran = run(program, **endpoint, **STRANGE)
    assert ran.returncode == 0, ran.stderr
    [sent] = hook.requests
    assert sent.path == "/v1/traces"
    assert b"publish thing.made" in sent.body
    assert b"signpost" in sent.body


def test_a_disabled_library_changes_no_event(
    transactional_db, plain, settings, monkeypatch
):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    telemetry.trace_with(SimpleSpanProcessor(InMemorySpanExporter()))
    settings.MIDDLEWARE = [
        "config.operations.telemetry.TracingMiddleware",
        *settings.MIDDLEWARE,
    ]
    try:
        assert (
            Api(tenant="acme", principal="ada").call("GET", "/healthz").status_code
            == 200
        )
        with receiver(204) as hook:
            EndpointFactory.create(url=hook.url)
            publish_event()
            assert dispatch() == 1
    finally:
        tracing.switch_off()
    assert not Trace.objects.exists()


def test_a_collector_that_never_answers_blocks_no_worker(monkeypatch):
    released = threading.Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            released.wait(60)
            return SpanExportResult.SUCCESS

    monkeypatch.setattr(telemetry, "FLUSH_S", 0.01)
    telemetry.trace_with(BatchSpanProcessor(Hanging()))
    try:
        with tracing.publishing("plain", "thing.made"):
            pass
        tracing.flush()  # returns: nobody has released the exporter
    finally:
        tracing.switch_off()
        released.set()


@pytest.mark.slow
def test_without_the_packages_the_variable_is_an_error_that_says_what_to_do():
    program = SETUP.format(before="sys.modules['opentelemetry'] = None")
    ran = run(program, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert ran.returncode == 1
    assert "requirements/production-otel.lock" in ran.stderr.splitlines()[-1]
