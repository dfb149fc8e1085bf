"""Send again what failed or was skipped: counted first, then started, watched and cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from webhooks_core.models import Endpoint, ReplayJob, SkippedEvent
from webhooks_core.owners import replay_jobs
from webhooks_core.owners.replay_jobs import Kind, ReplayRunningError, Selection
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.forms import TypesForm
from webhooks_core.pages.owners import Capability
from webhooks_core.web.repairs import Repairs

LATEST = 10
KINDS = [
    (Kind.FAILED.value, "What failed and has not arrived since"),
    (
        Kind.MISSING.value,
        "What was not sent while the endpoint was disabled or inactive",
    ),
]
NOT_SUBSCRIBED = (
    "Nothing was sent: the endpoint is disabled or inactive. Enable it first."
)


class SelectionForm(TypesForm):
    """What to send again; the times are in UTC."""

    field_order = ["kind", "since", "until"]
    kind = forms.ChoiceField(choices=KINDS, initial=Kind.FAILED.value)
    since = forms.DateTimeField(error_messages={"required": "From when?"})
    until = forms.DateTimeField(required=False)

    def clean_since(self) -> datetime:
        since: datetime = self.cleaned_data["since"]
        return in_utc(since)

    def clean_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["until"]
        return until and in_utc(until)

    def selection(self, now: datetime) -> Selection:
        fields = self.cleaned_data
        return Selection(
            kind=Kind(fields["kind"]),
            since=fields["since"],
            until=fields["until"] or now,
            event_types=fields["event_types"],
        )


class Replay(OwnerView):
    """The form; with its values in the query, a preview of what is sent; POST starts it."""

    acts_with = Capability.SEND
    refused_to = ("replay", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        if "since" not in request.GET:
            return self._page(endpoint, self._form(endpoint))
        form = SelectionForm(self.owner.profile, data=request.GET)
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        self.door.check_rate(request, "replay")
        selection = form.selection(timezone.now())
        preview = replay_jobs.preview(endpoint, selection)
        return self._page(endpoint, form, selection=selection, preview=preview)

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        form = SelectionForm(self.owner.profile, data=request.POST)
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        self.door.check_rate(request, "replay")
        selection = form.selection(timezone.now())
        try:
            job = replay_jobs.start(endpoint, selection, by=self.owner.by)
        except NotSubscribedError as error:
            raise RefusedError(NOT_SUBSCRIBED) from error
        except ReplayRunningError as error:
            raise RefusedError("Another replay to this endpoint is running.") from error
        address = self.address("replay-job", endpoint.public_id, job.public_id)
        return self.done("The replay has started.", address)

    def _form(self, endpoint: Endpoint) -> SelectionForm:
        """Return the form for what the endpoint most probably needs."""
        skipped = SkippedEvent.objects.filter(endpoint=endpoint).order_by("event")
        first = skipped.values_list("event__created_at", flat=True).first()
        kind = Kind.MISSING if first else Kind.FAILED
        since = first or timezone.now() - timedelta(days=1)
        initial = {"kind": kind.value, "since": shown_time(since)}
        return SelectionForm(self.owner.profile, initial=initial)

    def _page(
        self,
        endpoint: Endpoint,
        form: SelectionForm,
        *,
        status: int = 200,
        **context: Any,
    ) -> HttpResponse:
        jobs = ReplayJob.objects.filter(endpoint=endpoint).order_by("-pk")[:LATEST]
        context |= {"endpoint": endpoint, "form": form, "jobs": jobs, "kinds": KINDS}
        return self.render("replay", context, status=status)


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC. Raises ValidationError for one that no database stores."""
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise forms.ValidationError("Enter a time of this age.") from error


def shown_time(at: datetime) -> str:
    """Return a time as a field for times takes it, in UTC, to the second before."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


class ReplayPage(OwnerView):
    """How far a replay is."""

    def get(
        self, request: HttpRequest, endpoint_id: str, replay_id: str
    ) -> HttpResponse:
        job = self.job(endpoint_id, replay_id)
        context = {
            "endpoint": job.endpoint,
            "job": job,
            "eta": replay_jobs.eta(job, timezone.now()),
            "is_running": job.status == ReplayJob.Status.RUNNING,
        }
        return self.render("replay_job", context)

    def job(self, endpoint_id: str, replay_id: str) -> ReplayJob:
        """Return a replay to an endpoint of the owner. Raises Http404, NotFoundError."""
        endpoint = self.owner.endpoint(endpoint_id)
        return Repairs(endpoint, by=self.owner.by).replay(replay_id)


@method_decorator(require_POST, name="dispatch")
class CancelReplay(ReplayPage):
    acts_with = Capability.SEND
    refused_to = ("replay-job", "endpoint_id", "replay_id")

    def post(
        self, request: HttpRequest, endpoint_id: str, replay_id: str
    ) -> HttpResponse:
        job = self.job(endpoint_id, replay_id)
        if not replay_jobs.cancel(job, by=self.owner.by):
            raise RefusedError("Nothing was changed: it has ended.")
        address = self.address("replay-job", endpoint_id, replay_id)
        return self.done("Cancelled: what is queued already is still sent.", address)
