"""The list of an owner's deliveries, and the page of one, with its attempts drawn to scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from webhooks_core.errors import ApiError
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import deliveries, details, resending, wording
from webhooks_core.owners.deliveries import State
from webhooks_core.owners.remedies import remedy
from webhooks_core.owners.state import in_words
from webhooks_core.pages.base import OwnerView

PAGE_SIZE = 25
MOST_OTHERS = 50
# The choices of the list: what each shows, and its name.
CHOICES: dict[str, tuple[State | None, str]] = {
    "": (State.FAILED_UNDELIVERED, "Needs you"),
    "waiting": (State.PENDING, "Waiting"),
    "delivered": (State.DELIVERED, "Delivered"),
    "all": (None, "All"),
}
# Of the drawing; an attempt is visible beside pauses of minutes.
WIDTH, NARROWEST = 1000, 6
Row = TypeVar("Row")


class Deliveries(OwnerView):
    """The deliveries of all endpoints, or of one. An id leads to its delivery, or to its event's."""

    def get(self, request: HttpRequest) -> HttpResponse:
        subscriptions, text = self.owner.subscriptions, self._parameter("id")
        if delivery := _found(subscriptions.delivery, text):
            return redirect(self.address("delivery", delivery.public_id))
        choice = request.GET.get("show", "all" if text else "")
        choice = choice if choice in CHOICES else ""
        endpoints = subscriptions.all()
        endpoint = _found(subscriptions.find, self._parameter("endpoint"))
        shown = endpoints.filter(pk=endpoint.pk) if endpoint else endpoints
        last = _found(subscriptions.delivery, self._parameter("before"))
        rows = deliveries.newest(
            shown,
            state=CHOICES[choice][0],
            event_id=text,
            before=last.pk if last else None,
            size=PAGE_SIZE + 1,
        )
        context = {
            "rows": rows[:PAGE_SIZE],
            "older": rows[PAGE_SIZE - 1].public_id if len(rows) > PAGE_SIZE else "",
            "choices": [(key, name) for key, (_, name) in CHOICES.items()],
            "choice": choice,
            "endpoint": endpoint,
            "text": text,
            "has_endpoints": endpoints.exists(),
        }
        return self.render("deliveries", context)

    def _parameter(self, name: str) -> str:
        """Return a parameter without NUL, which databases refuse."""
        return self.request.GET.get(name, "").strip()[:64].replace("\0", "-")


def _found(find: Callable[[str], Row], public_id: str) -> Row | None:
    try:
        return find(public_id)
    except ApiError:
        return None


class DeliveryView(OwnerView):
    """What happened to one delivery, why, and what to do."""

    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        delivery = self.owner.subscriptions.delivery(delivery_id)
        endpoints = self.owner.subscriptions.all().order_by()
        others = deliveries.others(delivery, endpoints, most=MOST_OTHERS)
        context = self._state(delivery, others)
        context["unreached"] = self._unreached(delivery, others)
        return self.render("delivery", context | self._payload(request, delivery))

    def _unreached(
        self, delivery: Delivery, others: Sequence[Delivery]
    ) -> list[Endpoint]:
        """Return the endpoints that receive the type of the event, and did not get it."""
        reached = {each.endpoint_id for each in [delivery, *others]}
        matches, event = self.owner.profile.matches, delivery.event
        return [
            endpoint
            for endpoint in self.owner.subscriptions.all()
            if endpoint.pk not in reached
            and endpoint.created_at < event.created_at
            and matches(endpoint.event_types, event.type)
        ]

    def _state(self, delivery: Delivery, others: Sequence[Delivery]) -> dict[str, Any]:
        steps = details.seen(delivery)
        attempts = [step.attempt for step in steps]
        later = [
            each
            for each in others
            if each.endpoint_id == delivery.endpoint_id
            and each.replay_number > delivery.replay_number
        ]
        profile, last = self.owner.profile, attempts[-1] if attempts else None
        timeout_s, waiting = profile.timeout_s, wording.waits(delivery, timezone.now())
        has_arrived = any(
            each.status == Delivery.Status.DELIVERED for each in [delivery, *later]
        )
        return {
            "delivery": delivery,
            "verdict": wording.verdict(
                delivery, attempts, later=later, timeout_s=timeout_s, waiting=waiting
            ),
            "is_pending": delivery.status == Delivery.Status.PENDING,
            "has_arrived": has_arrived,
            "timeline": timeline(delivery, attempts) if attempts else None,
            "steps": steps,
            "is_hidden": delivery.endpoint.trusted,
            "most_attempts": profile.retry.max_attempts,
            "remedy": remedy(last.outcome, last.status_code, timeout_s=timeout_s)
            if last and not has_arrived
            else "",
            "others": others,
        }

    def _payload(self, request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        raw = bytes(delivery.event.body)
        exact = details.Text.of(raw)
        headers = details.headers(delivery, now=timezone.now())
        is_exact = request.GET.get("body") == "exact"
        pretty = None if is_exact else details.pretty(raw)
        return {
            "body": pretty or exact,
            "is_exact": pretty is None,
            "curl": details.curl(delivery, headers, exact) if headers else "",
            "is_cut": exact.is_cut,
        }


class BodyView(OwnerView):
    """The exact bytes as a download: a browser must not display them."""

    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        event = self.owner.subscriptions.delivery(delivery_id).event
        disposition = f'attachment; filename="{event.public_id}.json"'
        return HttpResponse(
            bytes(event.body),
            content_type="application/octet-stream",
            headers={"Content-Disposition": disposition},
        )


@method_decorator(require_POST, name="dispatch")
class Resend(OwnerView):
    """Sends the event of a delivery again, and shows the delivery that is sent."""

    refused_to = ("delivery", "delivery_id")

    def post(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        delivery = self.owner.subscriptions.delivery(delivery_id)
        self.door.check_rate(request, "resend")
        sent = resending.resend(delivery, by=self.owner.by)
        message = (
            "Its next attempt is due now."
            if sent.pk == delivery.pk
            else "The event is sent again: this is its new delivery."
        )
        return self.done(message, self.address("delivery", sent.public_id))


def timeline(delivery: Delivery, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Return the attempts to scale, from the creation to the last or the next one.

    `next_x` is where the next attempt is due, None if there is none.
    """
    start, next_at = delivery.created_at, delivery.next_attempt_at
    end = max(filter(None, [next_at, *(attempt.ended_at for attempt in attempts)]))
    # At least a moment, so that one quick attempt does not fill the drawing.
    whole = max(end - start, timedelta(milliseconds=100))

    def place(at: datetime) -> int:
        return max(0, min(WIDTH, round(WIDTH * ((at - start) / whole))))

    def bar(attempt: Attempt) -> dict[str, Any]:
        x, took = place(attempt.started_at), f"{attempt.duration_ms} ms"
        width = max(place(attempt.ended_at) - x, NARROWEST)
        return {
            "x": min(x, WIDTH - width),
            "width": width,
            "tone": "success" if attempt.outcome == Outcome.OK else "error",
            "title": f"Attempt {attempt.number}: {wording.result(attempt)}, {took}",
        }

    words = ", ".join(
        f"{wording.result(attempt)} after {in_words(attempt.started_at - start)}"
        for attempt in attempts
    )
    return {
        "bars": list(map(bar, attempts)),
        "next_x": place(next_at) if next_at else None,
        "marks": [f"+{in_words(whole * part / 4)}" for part in range(5)],
        "description": f"Attempts since the creation: {words}",
    }
