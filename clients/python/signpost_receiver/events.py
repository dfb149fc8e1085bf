"""The types of the events that Signpost sends; `type` tells them apart."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Segment(TypedDict, total=False):
    speaker: str
    start: float
    end: float
    text: str


class Transcript(TypedDict):
    language: NotRequired[str]
    text: str
    truncated: bool
    segments: NotRequired[list[Segment]]


class Summary(TypedDict):
    label: str
    content: str
    format: str
    template_name: NotRequired[str]


class SummaryCompletedData(TypedDict):
    audio_id: str
    report_id: NotRequired[str]
    status: NotRequired[int]
    title: NotRequired[str]
    duration_ms: NotRequired[int]
    recorded_at: NotRequired[str]
    transcript: NotRequired[Transcript]
    summaries: NotRequired[list[Summary]]


class PingData(TypedDict):
    endpoint_id: str


class IngestCompletedData(TypedDict):
    document_id: str
    title: str
    content_type: str
    checksum: str
    size_bytes: int
    characters: int
    chunk_count: int
    metadata: dict[str, Any]
    created_at: str


class PolicyViolationData(TypedDict):
    decision_id: str
    decision: Literal["denied"]
    principal_id: str
    action: str
    resource: str
    reason: str
    decided_at: str


class DriftDetectedData(TypedDict):
    subject: str
    metric: str
    value: float
    threshold: float


class EvalRegressionData(TypedDict):
    run_id: str
    suite: str
    score: float
    baseline: float


class TestData(TypedDict):
    subscription_id: str


class EndpointStateData(TypedDict):
    subscription_id: str
    url: str
    since: str | None
    attempts: int
    error: str | None
    message: str


class BudgetThresholdData(TypedDict):
    budget: str
    subject: str
    counts: str
    window: str
    percent: int
    limit: int | str
    used: int | str
    resets_at: str


class _Recording(TypedDict):
    id: str
    created_at: str


class _Gateway(_Recording):
    tenant_id: str
    request_id: str
    principal_id: str
    trace_id: str


class SummaryCompleted(_Recording):
    type: Literal["summary.completed"]
    data: SummaryCompletedData


class Ping(_Recording):
    type: Literal["webhook.ping"]
    data: PingData


class IngestCompleted(_Gateway):
    type: Literal["ingest.completed"]
    data: IngestCompletedData


class PolicyViolation(_Gateway):
    type: Literal["audit.policy_violation"]
    data: PolicyViolationData


class DriftDetected(_Gateway):
    type: Literal["drift.detected"]
    data: DriftDetectedData


class EvalRegression(_Gateway):
    type: Literal["eval.regression"]
    data: EvalRegressionData


class EndpointFailing(_Gateway):
    type: Literal["endpoint.failing"]
    data: EndpointStateData


class EndpointDisabled(_Gateway):
    type: Literal["endpoint.disabled"]
    data: EndpointStateData


class EndpointRecovered(_Gateway):
    type: Literal["endpoint.recovered"]
    data: EndpointStateData


class BudgetThreshold(_Gateway):
    type: Literal["budget.threshold"]
    data: BudgetThresholdData


class Test(_Gateway):
    type: Literal["webhook.test"]
    data: TestData


Event = (
    SummaryCompleted
    | Ping
    | IngestCompleted
    | PolicyViolation
    | DriftDetected
    | EvalRegression
    | EndpointFailing
    | EndpointDisabled
    | EndpointRecovered
    | BudgetThreshold
    | Test
)
