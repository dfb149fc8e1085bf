"""Why an event did or did not reach each endpoint of its owner."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from webhooks_core.owners import why
from webhooks_core.owners.why import Answer
from webhooks_core.pages.base import OwnerView
from webhooks_core.pages.owners import Capability

TONES = {
    Answer.DELIVERED: "success",
    Answer.WAITING: "pending",
    Answer.SKIPPED: "error",
    Answer.FAILED: "error",
}
WORDS = {
    Answer.UNKNOWN: "Unknown",
    Answer.EXPIRED: "Removed",
    Answer.NOT_SUBSCRIBED: "Not subscribed",
    Answer.FILTERED: "Filtered",
    Answer.SKIPPED: "Skipped",
    Answer.WAITING: "Waiting",
    Answer.DELIVERED: "Delivered",
    Answer.FAILED: "Failed",
}


class WhyNot(OwnerView):
    def get(self, request: HttpRequest) -> HttpResponse:
        event_id = request.GET.get("event_id", "").strip()[:64]
        endpoints = list(self.owner.subscriptions.all())
        may_see = self.owner.may(Capability.VIEW_PAYLOAD)
        answers = (
            why.explain_all(endpoints, event_id, with_values=may_see)
            if event_id
            else {}
        )
        lines = [
            (endpoint, each, WORDS[each.answer], TONES.get(each.answer, "neutral"))
            for endpoint in endpoints
            if (each := answers.get(endpoint.pk))
        ]
        event = next((each.event for _, each, *_ in lines if each.event), None)
        context = {"event_id": event_id, "lines": lines, "event": event}
        return self.render("why", context | {"has_endpoints": bool(endpoints)})
