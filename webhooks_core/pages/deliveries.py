"""The list of an owner's deliveries, the page of one, and its Resend button."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.owners import deliveries, details, payloads, resending, wording
from webhooks_core.owners.deliveries import DeliveryFilter, State
from webhooks_core.owners.remedies import remedy
from webhooks_core.pages import timeline
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


class Deliveries(OwnerView):
    """The deliveries of all endpoints, or of one. An id leads to its delivery, or to its event's."""

    def get(self, request: HttpRequest) -> HttpResponse:
        text = request.GET.get("id", "").strip()[:64]
        if text.startswith(self.owner.profile.delivery_prefix):
            delivery = self._find(text)
            if delivery is not None:
                return redirect(self.address("delivery", delivery.public_id))
        choice = request.GET.get("show", "all" if text else "")
        choice = choice if choice in CHOICES else ""
        endpoints = self.owner.subscriptions.all()
        endpoint = endpoints.filter(public_id=self._printable("endpoint")).first()
        if endpoint:
            endpoints = endpoints.filter(pk=endpoint.pk)
        last = self._find(request.GET.get("before", ""))
        wanted = DeliveryFilter(
            state=CHOICES[choice][0], event_id=self._printable("id")
        )
        rows = deliveries.newest(
            endpoints, wanted, before=last.pk if last else None, size=PAGE_SIZE + 1
        )
        shown = rows[:PAGE_SIZE]
        context = {
            "rows": self._rows(shown),
            "older": shown[-1].public_id if len(rows) > PAGE_SIZE else "",
            "choices": [(key, name) for key, (_, name) in CHOICES.items()],
            "choice": choice,
            "endpoint": endpoint,
            "text": text,
            "has_endpoints": self.owner.subscriptions.all().exists(),
        }
        return self.render("deliveries", context)

    def _printable(self, name: str) -> str:
        """Return a parameter; what no id holds, such as NUL, is replaced: databases refuse it."""
        text = self.request.GET.get(name, "").strip()[:64]
        return text if text.isprintable() else "-"

    def _find(self, public_id: str) -> Delivery | None:
        try:
            return self.owner.delivery(public_id)
        except Http404:
            return None

    def _rows(self, shown: Sequence[Delivery]) -> list[dict[str, Any]]:
        return [
            {
                "delivery": row,
                "badge": wording.state(row),
                "result": wording.summary(row),
            }
            for row in shown
        ]


class DeliveryView(OwnerView):
    """What happened to one delivery, why, and what to do."""

    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        found = self.owner.delivery(delivery_id)
        delivery, attempts = details.snapshot(found)
        endpoints = self.owner.subscriptions.all().order_by()
        others = deliveries.others(delivery, endpoints, most=MOST_OTHERS)
        context = self._state(delivery, attempts, others)
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

    def _state(
        self,
        delivery: Delivery,
        attempts: Sequence[Attempt],
        others: Sequence[Delivery],
    ) -> dict[str, Any]:
        later = [
            each
            for each in others
            if each.endpoint_id == delivery.endpoint_id
            and each.replay_number > delivery.replay_number
        ]
        timeout_s, now = self.owner.profile.timeout_s, timezone.now()
        verdict = wording.verdict(
            delivery,
            attempts,
            later=later,
            timeout_s=timeout_s,
            waiting=wording.waits(delivery, now),
        )
        last = attempts[-1] if attempts else None
        has_arrived = any(
            each.status == Delivery.Status.DELIVERED for each in [delivery, *later]
        )
        return {
            "delivery": delivery,
            "badge": wording.state(delivery),
            "verdict": verdict,
            "is_pending": delivery.status == Delivery.Status.PENDING,
            "has_arrived": has_arrived,
            "timeline": timeline.timeline(delivery, attempts),
            "steps": details.seen(delivery, attempts),
            "hidden": self.owner.hidden_response(delivery.endpoint),
            "most_attempts": self.owner.profile.retry.max_attempts,
            "remedy": ""
            if has_arrived or not last
            else remedy(last.outcome, last.status_code, timeout_s=timeout_s),
            "others": [(each, *wording.state(each)) for each in others],
        }

    def _payload(self, request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        raw = bytes(delivery.event.body)
        exact = payloads.Text.of(raw)
        headers = payloads.headers(delivery, now=timezone.now())
        is_exact = request.GET.get("body") == "exact"
        pretty = None if is_exact else payloads.pretty(raw)
        return {
            "body": pretty or exact,
            "is_exact": pretty is None,
            "curl": payloads.curl(delivery, headers, exact) if headers else "",
            "is_cut": exact.is_cut,
        }


class BodyView(OwnerView):
    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        return payloads.download(self.owner.delivery(delivery_id).event)


@method_decorator(require_POST, name="dispatch")
class Resend(OwnerView):
    """Sends the event of a delivery again, and shows the delivery that is sent."""

    refused_to = ("delivery", "delivery_id")

    def post(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        delivery = self.owner.delivery(delivery_id)
        self.door.check_rate(request, "resend")
        sent = resending.resend(delivery, by=self.owner.by)
        is_same = sent.pk == delivery.pk
        message = (
            "Its next attempt is due now."
            if is_same
            else "The event is sent again: this is its new delivery."
        )
        return self.done(message, self.address("delivery", sent.public_id))
