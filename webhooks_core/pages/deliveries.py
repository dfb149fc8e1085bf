"""The page of a delivery, and what its owner does with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from webhooks_core.models import Delivery
from webhooks_core.owners import payloads, replays, why
from webhooks_core.owners.remedies import remedy
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.pages import timeline, wording
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.owners import Capability

MOST_OTHERS = 50
NOT_WAITING = "Nothing was changed: it has ended, or an attempt is in progress."
NOT_SUBSCRIBED = (
    "Nothing was sent: the endpoint is disabled or inactive. Enable it, then resend."
)


class DeliveryView(OwnerView):
    """What happened to one delivery, why, and what to do."""

    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        delivery = self.owner.delivery(delivery_id)
        attempts = list(delivery.attempt_set.order_by("number"))
        others = self._others(delivery)
        context = self._state(delivery, attempts, others)
        if self.owner.may(Capability.VIEW_PAYLOAD):
            context |= self._payload(request, delivery)
        return self.render("delivery", context)

    def _others(self, delivery: Delivery) -> list[Delivery]:
        """Return the event's other deliveries to endpoints of the owner, the newest first."""
        same = Delivery.objects.filter(
            event=delivery.event_id, endpoint__in=self.owner.subscriptions.all()
        )
        rows = same.exclude(pk=delivery.pk).select_related("endpoint")
        return list(rows.order_by("-pk")[:MOST_OTHERS])

    def _state(
        self, delivery: Delivery, attempts: Sequence[Any], others: Sequence[Delivery]
    ) -> dict[str, Any]:
        later = [
            each
            for each in others
            if each.endpoint_id == delivery.endpoint_id
            and each.replay_number > delivery.replay_number
        ]
        timeout_s = self.owner.profile.timeout_s
        verdict = wording.verdict(
            delivery,
            attempts,
            later=later,
            timeout_s=timeout_s,
            waiting=why.waits(delivery, timezone.now()),
        )
        is_pending = delivery.status == Delivery.Status.PENDING
        hidden = self.owner.hidden_response(delivery.endpoint)
        last = attempts[-1] if attempts else None
        return {
            "delivery": delivery,
            "badge": wording.state(delivery),
            "verdict": verdict,
            "is_pending": is_pending,
            "is_waiting": is_pending and delivery.claimed_by is None,
            "has_arrived": any(
                each.status == Delivery.Status.DELIVERED for each in [delivery, *later]
            ),
            "timeline": timeline.timeline(delivery, attempts),
            "steps": timeline.steps(delivery, attempts, hidden=hidden),
            "last": last,
            "most_attempts": self.owner.profile.retry.max_attempts,
            "remedy": last
            and remedy(last.outcome, last.status_code, timeout_s=timeout_s),
            "origin": wording.origin(delivery),
            "others": [
                (each, *wording.state(each), wording.origin(each)) for each in others
            ],
        }

    def _payload(self, request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        raw = bytes(delivery.event.body)
        exact, headers = (
            payloads.Text.of(raw),
            payloads.headers(delivery, now=timezone.now()),
        )
        is_exact = request.GET.get("body") == "exact"
        pretty = None if is_exact else payloads.pretty(raw)
        return {
            "body": pretty or exact,
            "is_exact": pretty is None,
            "curl": payloads.curl(delivery, headers, exact) if headers else "",
            "is_cut": exact.is_cut,
        }


class BodyView(OwnerView):
    sees_with = Capability.VIEW_PAYLOAD

    def get(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        return payloads.download(self.owner.delivery(delivery_id).event)


@method_decorator(require_POST, name="dispatch")
class DeliveryAction(OwnerView):
    """Something that a person does with a delivery; it leads back to its page."""

    acts_with = Capability.SEND
    refused_to = ("delivery", "delivery_id")

    def post(self, request: HttpRequest, delivery_id: str) -> HttpResponse:
        delivery = self.owner.delivery(delivery_id)
        self.door.check_rate(request, "resend")
        shown, message = self.act(delivery)
        return self.done(message, self.address("delivery", shown.public_id))

    def act(self, delivery: Delivery) -> tuple[Delivery, str]:
        """Return the delivery to show, and what was done. Raises RefusedError."""
        raise NotImplementedError


class Resend(DeliveryAction):
    def act(self, delivery: Delivery) -> tuple[Delivery, str]:
        try:
            sent = replays.resend(delivery, by=self.owner.by)
        except NotSubscribedError as error:
            raise RefusedError(NOT_SUBSCRIBED) from error
        if sent.pk == delivery.pk:
            return sent, "It was waiting already, and its next attempt is due now."
        return sent, "The event is sent again: this is its new delivery."


class RetryNow(DeliveryAction):
    def act(self, delivery: Delivery) -> tuple[Delivery, str]:
        if not replays.retry_now(delivery, by=self.owner.by):
            raise RefusedError(NOT_WAITING)
        return delivery, "The next attempt is due now."


class Cancel(DeliveryAction):
    def act(self, delivery: Delivery) -> tuple[Delivery, str]:
        if not replays.cancel(delivery, by=self.owner.by):
            raise RefusedError(NOT_WAITING)
        return delivery, "Cancelled: it is not sent any more."
