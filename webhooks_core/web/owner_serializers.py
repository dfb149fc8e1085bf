"""Responses to what owners ask of their webhooks, in both products."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import (
    extend_schema_field,
    extend_schema_serializer,
    inline_serializer,
)
from rest_framework import serializers

from webhooks_core.conf import webhook_settings
from webhooks_core.models import EndpointChange, ReplayJob
from webhooks_core.network.outcomes import Outcome
from webhooks_core.owners import replay_jobs
from webhooks_core.owners.delivery_details import TRIGGERS
from webhooks_core.owners.endpoint_state import EndpointState, Health
from webhooks_core.owners.event_search import Fate
from webhooks_core.owners.replays import Resent
from webhooks_core.owners.why import Answer
from webhooks_core.secrets import HIDDEN
from webhooks_core.times import iso
from webhooks_core.web.fields import TimeField
from webhooks_core.web.json_schema import array_of, described, object_of, ref
from webhooks_core.web.owner_examples import (
    EVENT_TYPE,
    LATER,
    SAMPLE_ID,
    STORED_EVENT,
    TIME,
    response_example,
)

REPLAY_STATUSES = ReplayJob.Status.values
ENDPOINT_STATES = [state.word for state in Health if state != Health.DELETED]


def example(**fields: Any) -> Any:
    """Return a decorator that gives a response its example in the OpenAPI document."""
    return extend_schema_serializer(examples=[response_example(fields)])


class NextTimeField(TimeField):
    """A time, or null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)


def choice(values: Any, **options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField([(str(v), str(v)) for v in values], **options)


@example(
    state="failing",
    since=TIME,
    attempts=759,
    error='HTTP 500 `{"error": "no disk"}`',
    last_success_at=None,
    waiting=12,
    skipped=0,
    skipped_since=None,
    sentence="Fails since 03:20:00 UTC: 759 attempts, all HTTP 500. Last success: never."
    " 12 wait.",
    remedy="Your code raised an error. Look into the log of your server at this time.",
    quota=5,
    retention_days=30,
)
class StateSerializer(serializers.Serializer[EndpointState]):
    state = choice(
        ENDPOINT_STATES,
        source="state.word",
        help_text="The first that applies.",
    )
    since = NextTimeField(help_text="When the state began, if that is known.")
    attempts = serializers.IntegerField(help_text="That failed since the last success.")
    error = serializers.CharField(help_text="Of the latest of them; empty for none.")
    last_success_at = NextTimeField(help_text="Null: never.")
    waiting = serializers.IntegerField(help_text="Pending deliveries, up to 10,001.")
    skipped = serializers.IntegerField(
        help_text="Events that were not sent while it was disabled or inactive."
    )
    skipped_since = NextTimeField(help_text="The time of the first of them.")
    sentence = serializers.CharField(help_text="All of this in words.")
    remedy = serializers.CharField(help_text="What to do; empty if nothing.")
    quota = serializers.SerializerMethodField(
        help_text="The subscriptions that an owner may have."
    )
    retention_days = serializers.SerializerMethodField(
        help_text="How long events and deliveries are kept."
    )

    def get_quota(self, _: EndpointState) -> int:
        return int(self.context["quota"])

    def get_retention_days(self, _: EndpointState) -> int:
        return webhook_settings.RETENTION_DAYS


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class HeaderPairsField(serializers.Field[Any, Any, Any, Any]):
    """Headers as an object; the values of one name are joined by commas."""

    def to_representation(self, value: list[tuple[str, str]]) -> dict[str, str]:
        headers: dict[str, str] = {}
        for name, text in value:
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        return headers


@extend_schema_field(
    {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
)
class HiddenHeadersField(HeaderPairsField):
    """Headers, or null where they are for operators alone."""


class AttemptSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="From 1.")
    trigger = choice(TRIGGERS, help_text="What caused it.")
    started_at = TimeField(help_text="UTC.")
    duration_ms = serializers.IntegerField(help_text="Until its end.")
    url = serializers.CharField(help_text="Where it went.")
    request_headers = HeaderPairsField(
        help_text="As they were sent; `sensitive` ones masked."
    )
    response_status = serializers.IntegerField(
        allow_null=True, help_text="Null: there was no response."
    )
    response_headers = HiddenHeadersField(
        allow_null=True, help_text="Null: for operators alone."
    )
    response_text = serializers.CharField(
        allow_null=True, help_text="The first 4 KiB. Null: for operators alone."
    )
    error_class = serializers.CharField(
        help_text="Empty after a success; otherwise one of "
        + ", ".join(kind for kind in Outcome if kind != Outcome.OK)
        + "."
    )
    error = serializers.CharField(help_text="What failed, in words.")


class SentEventSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="delivery.event.public_id", help_text="Its id.")
    type = serializers.CharField(source="delivery.event.type", help_text="Its type.")
    created_at = TimeField(
        source="delivery.event.created_at", help_text="When it was published."
    )
    payload = serializers.CharField(help_text="The exact body, as it is signed.")


class DetailsSerializer(serializers.Serializer[Any]):
    """A delivery in full. A product adds `delivery`, the record of its list."""

    trigger = serializers.CharField(
        source="delivery.trigger",
        help_text="`event`, `test`, `replay`, or `manual`: a person resent it.",
    )
    next_attempt_at = NextTimeField(
        source="delivery.next_attempt_at", help_text="Null: there is none."
    )
    waits = serializers.CharField(
        help_text="Why it is not sent yet; empty if it ended."
    )
    resent = choice(
        Resent,
        allow_null=True,
        help_text="What became of it when it was resent; null: it was not.",
    )
    event = SentEventSerializer(source="*", help_text="What is sent.")
    attempts = AttemptSerializer(many=True, help_text="Oldest first.")
    sensitive = serializers.ListField(
        child=serializers.CharField(), help_text="Headers whose values are masked."
    )


@example(id=f"dlv_{SAMPLE_ID}", event_id=f"evt_{SAMPLE_ID}")
class AcceptedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        source="public_id", help_text="The delivery that is sent or was changed."
    )
    event_id = serializers.CharField(
        source="event.public_id", help_text="The event; it stays the same."
    )


@example(
    id=f"rpl_{SAMPLE_ID}",
    status="running",
    selection="failed",
    since=TIME,
    until=LATER,
    event_types=[],
    total=120,
    sent=50,
    skipped=0,
    rate_per_s=50,
    eta=LATER,
    created_at=LATER,
    finished_at=None,
)
class ReplaySerializer(serializers.Serializer[ReplayJob]):
    id = serializers.CharField(
        source="public_id", help_text="`rpl_` and 26 characters."
    )
    status = choice(
        REPLAY_STATUSES,
        help_text="`stopped`: the subscription receives nothing any more.",
    )
    selection = choice(
        ReplayJob.Kind.values, source="kind", help_text="What is sent again."
    )
    since = TimeField(help_text="Events from this time on.")
    until = TimeField(help_text="Events before this time.")
    event_types = serializers.ListField(
        child=serializers.CharField(), help_text="Empty: all."
    )
    total = serializers.IntegerField(help_text="Counted at the start.")
    sent = serializers.IntegerField(help_text="Queued so far.")
    skipped = serializers.IntegerField(
        help_text="Delivered, resent or removed since they were counted."
    )
    rate_per_s = serializers.IntegerField(help_text="At most; live traffic goes first.")
    eta = serializers.SerializerMethodField(
        help_text="When all are queued, at this rate. Null: it has ended."
    )
    created_at = TimeField(help_text="UTC.")
    finished_at = NextTimeField(help_text="Null: it is running.")

    @extend_schema_field(TimeField(allow_null=True))
    def get_eta(self, job: ReplayJob) -> str | None:
        at = replay_jobs.eta(job, timezone.now())
        return iso(at) if at else None


@example(total=3, by_type={"summary.completed": 3}, by_error={"HTTP 500": 3})
class PreviewSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="Events, up to 5,000.")
    by_type = serializers.DictField(
        child=serializers.IntegerField(), help_text="By event type."
    )
    by_error = serializers.DictField(
        child=serializers.IntegerField(), help_text="By the last error; of failed ones."
    )


@example(secret="whsec_<base64 of 32 bytes>", old_secret_ends_at=None)  # noqa: S106
class RotatedSerializer(serializers.Serializer[Any]):
    secret = serializers.CharField(help_text="`whsec_…`, shown only here.")
    old_secret_ends_at = NextTimeField(help_text="Null: at once.")


@example(custom_headers={"X-Environment": HIDDEN}, standard_headers=True)
class SettingsSerializer(serializers.Serializer[Any]):
    custom_headers = serializers.DictField(
        child=serializers.CharField(), help_text="Their values are masked."
    )
    standard_headers = serializers.BooleanField(
        help_text="Whether deliveries have those of Standard Webhooks too."
    )


@example(
    answer="waiting",
    sentence="Waits: the endpoint hangs, one request at a time, 252 before this one.",
    event_type="summary.completed",
    delivery_id=f"dlv_{SAMPLE_ID}",
    position=252,
    next_attempt_at=TIME,
)
class WhySerializer(serializers.Serializer[Any]):
    answer = choice(Answer, help_text="What became of the event here.")
    sentence = serializers.CharField(help_text="The reason in words.")
    event_type = serializers.CharField(
        source="event.type", default=None, allow_null=True, help_text="Its type."
    )
    delivery_id = serializers.CharField(
        source="delivery.public_id",
        default=None,
        allow_null=True,
        help_text="The delivery that the answer is about.",
    )
    position = serializers.IntegerField(
        allow_null=True, help_text="Of a waiting one: how many are sent before."
    )
    next_attempt_at = NextTimeField(help_text="Of a waiting one.")


class EndpointFateSerializer(serializers.Serializer[Any]):
    endpoint_id = serializers.CharField(help_text="The subscription.")
    outcome = choice(Fate, source="fate", help_text="The best of its deliveries.")
    delivery_id = serializers.CharField(help_text="Empty: it was skipped.")


class StoredEventSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        source="event.public_id", help_text="The same in deliveries."
    )
    type = serializers.CharField(source="event.type", help_text="The event type.")
    created_at = TimeField(source="event.created_at", help_text="UTC.")
    size = serializers.IntegerField(source="event.size", help_text="Bytes of the body.")
    endpoints = EndpointFateSerializer(
        many=True, help_text="Where it went; empty: nobody receives its type."
    )


class ChangeSerializer(serializers.Serializer[Any]):
    at = TimeField(help_text="UTC.")
    action = choice(EndpointChange.Action.values, help_text="What was done.")
    actor_kind = serializers.CharField(
        help_text="`owner`, `operator`, `command`, `configuration`, `engine` or `receiver`."
    )
    actor = serializers.SerializerMethodField(
        help_text="Of an owner: the account or principal. Empty for others."
    )
    subject = serializers.CharField(help_text="The delivery or the replay, if any.")
    details = serializers.DictField(
        help_text="Of a change: each field with its value before and after."
    )

    def get_actor(self, change: EndpointChange) -> str:
        return change.actor if change.actor_kind == "owner" else ""


class EventTypeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As subscriptions name it.")
    description = serializers.CharField(help_text="When it is sent.")
    schema = serializers.DictField(help_text="The JSON Schema of `data`.")
    sample = serializers.DictField(help_text="An example of `data`.")


def page(name: str, item: type[serializers.Serializer[Any]], shown: Any) -> Any:
    """Return the shape of a page of a list with a cursor; `shown` is its example."""
    cursor = serializers.CharField(help_text="For the next page; empty after the last.")
    items = item(many=True, help_text="Newest first.")
    shape = inline_serializer(name, {"items": items, "next_cursor": cursor})
    return whole(shape, {"items": [shown], "next_cursor": ""})


def whole(shape: Any, shown: Any) -> Any:
    """Return a shape that the document describes as it is, also where the action is a list."""
    example(**shown)(type(shape))
    extend_schema_serializer(many=False)(type(shape))
    return shape


STORED_EVENTS = page("StoredEventPage", StoredEventSerializer, STORED_EVENT)
EVENT_TYPES = whole(
    inline_serializer(
        "EventTypeList",
        {"items": EventTypeSerializer(many=True, help_text="All of the product.")},
    ),
    {"items": [EVENT_TYPE]},
)


def delivery_list(component: str) -> dict[str, Any]:
    """Return the shape of the contract's list, which has a cursor where filters are given."""
    items = array_of(ref(component)) | {"description": "Newest first."}
    cursor = described("With filters: for the next page; empty after the last.")
    return object_of(["items"], items=items, next_cursor=cursor)
