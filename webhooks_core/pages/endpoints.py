"""The list of an owner's endpoints, the form that adds one, the page of each, and of its secret."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from webhooks_core import endpoints
from webhooks_core.errors import ApiError, ConflictError
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import repairs, resending, state
from webhooks_core.owners.resending import Selection
from webhooks_core.pages.base import Capability, OwnerView, secret_once, show_once
from webhooks_core.pages.forms import LONGEST_H, EndpointForm, RotationForm
from webhooks_core.secrets import SecretUnreadableError

RECENT = 10
FAILED_WITHIN = timedelta(days=7)
CONFIRM_FIRST = "Nothing was saved yet: confirm that it is you, then save again."


class Start(OwnerView):
    """All endpoints of the owner."""

    def get(self, request: HttpRequest) -> HttpResponse:
        rows, profile = list(self.owner.subscriptions.all()), self.owner.profile
        states = state.describe_all(rows, for_owner=True)
        shown = [
            (row, states[row.pk], profile.receives_all(row.event_types)) for row in rows
        ]
        return self.render("start", {"rows": shown, "quota": profile.quota})


def form_of(
    view: OwnerView, data: Any = None, endpoint: Endpoint | None = None
) -> EndpointForm:
    extra = view.door.extra_settings
    return EndpointForm(view.owner.profile, extra=extra, data=data, endpoint=endpoint)


class Add(OwnerView):
    """The form of a new endpoint; POST adds it, and sends a test to it."""

    sees_with = Capability.MANAGE

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(form_of(self))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = form_of(self, request.POST)
        if not form.is_valid():
            return self._page(form, status=400)
        self.door.check_rate(request, "create")
        try:
            created = self.owner.subscriptions.create(**form.values())
        except ApiError as error:
            form.refuse(error)
            return self._page(form, status=error.status_code)
        try:
            self.door.check_rate(request, "test")
            sent_test(self, created.endpoint)
            message = "The endpoint was added. A test event is on its way."
        except ApiError:
            message = (
                "The endpoint was added. No test was sent to it: it is paused, or too many tests "
                "were sent."
            )
        address = self.address("endpoint", created.endpoint.public_id)
        return show_once(request, message, address, created.secret)

    def _page(self, form: EndpointForm, *, status: int = 200) -> HttpResponse:
        used, quota = self.owner.subscriptions.all().count(), self.owner.profile.quota
        context = {"form": form, "used": used, "quota": quota}
        return self.render("add", context, status=status)


def sent_test(view: OwnerView, endpoint: Endpoint) -> Delivery:
    """Send a test event, and return its delivery."""
    event = view.owner.subscriptions.send_test(endpoint.public_id)
    delivery = Delivery.objects.filter(event=event, endpoint=endpoint).first()
    if delivery is None:
        raise repairs.NotReceivingError
    return delivery


class EndpointView(OwnerView):
    """How an endpoint is, what it gets, and its settings; POST changes them."""

    refused_to = ("endpoint", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.subscriptions.find(endpoint_id)
        return self._page(endpoint, form_of(self, endpoint=endpoint))

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.subscriptions.find(endpoint_id)
        repairs.check_not_declared(endpoint)
        form = form_of(self, request.POST, endpoint)
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        if form.cleaned_data["url"] != endpoint.url and (
            asked := self.door.confirm(request, request.path)
        ):
            messages.info(request, CONFIRM_FIRST)
            return asked
        try:
            self.owner.subscriptions.update(endpoint, **form.values())
        except ApiError as error:
            form.refuse(error)
            return self._page(endpoint, form, status=error.status_code)
        return self.done("The settings were saved.", request.path)

    def _page(
        self, endpoint: Endpoint, form: EndpointForm, *, status: int = 200
    ) -> HttpResponse:
        newest = Delivery.objects.filter(endpoint=endpoint).order_by("-pk")
        since = timezone.now() - FAILED_WITHIN
        context = {
            "endpoint": endpoint,
            "state": state.describe(endpoint, for_owner=True),
            "outage": state.outage(endpoint),
            "failed": resending.count(endpoint, Selection.FAILED, since=since),
            "form": form,
            "recent": newest.select_related("event").defer("event__body")[:RECENT],
            "secrets": endpoint.endpointsecret_set.current(timezone.now()),
            "secret": secret_once(self.request),
        }
        return self.render("endpoint", context, status=status)


@method_decorator(require_POST, name="dispatch")
class EndpointAction(OwnerView):
    """Something that a person does with an endpoint; refused, it leads back to its page."""

    refused_to = ("endpoint", "endpoint_id")

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        return self.act(self.owner.subscriptions.find(endpoint_id))

    def act(self, endpoint: Endpoint) -> HttpResponse:
        """Return the page that shows the result. Raises ApiError."""
        raise NotImplementedError


class SendTest(EndpointAction):
    def act(self, endpoint: Endpoint) -> HttpResponse:
        self.door.check_rate(self.request, "test")
        delivery = sent_test(self, endpoint)
        address = self.address("delivery", delivery.public_id)
        return self.done("The test event is sent: its result appears here.", address)


class Enable(EndpointAction):
    def act(self, endpoint: Endpoint) -> HttpResponse:
        repairs.enable(endpoint, by=self.owner.by)
        address = self.address("endpoint", endpoint.public_id)
        return self.done("Enabled: what waits is sent now.", address)


class ResendMany(EndpointAction):
    """Resends what failed within seven days, or what was missed in the last outage."""

    def act(self, endpoint: Endpoint) -> HttpResponse:
        self.door.check_rate(self.request, "resend")
        if self.request.POST.get("status") == Selection.MISSED:
            selection, since = Selection.MISSED, endpoint.disabled_at
            until = endpoint.enabled_at
        else:
            selection, since = Selection.FAILED, timezone.now() - FAILED_WITHIN
            until = None
        if since is None:
            raise ConflictError("Nothing was sent: nothing is missed any more.")
        count = resending.resend_since(
            endpoint, selection, since=since, until=until, by=self.owner.by
        )
        if not count:
            raise ConflictError(
                "Nothing was sent: all of it is on its way, or arrived."
            )
        text = ngettext(
            "{:,} event will be sent.",
            "{:,} events will be sent, one after another. New events are sent between them.",
            count,
        )
        address = self.address("endpoint", endpoint.public_id)
        return self.done(text.format(count), address)


class Delete(EndpointAction):
    def act(self, endpoint: Endpoint) -> HttpResponse:
        repairs.check_not_declared(endpoint)
        self.check_word("delete")
        self.owner.subscriptions.delete(endpoint)
        return self.done("The endpoint was deleted.", self.address("start"))


class Secret(OwnerView):
    """The page asks what to do; POST shows the secret, or rotates it (`action`).

    The password was given. The address shows the secret only once after a POST.
    """

    sees_with = acts_with = Capability.VIEW_SECRET
    refused_to = ("endpoint", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.subscriptions.find(endpoint_id)
        return self.door.confirm(request, request.path) or self._page(endpoint)

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.subscriptions.find(endpoint_id)
        if asked := self.door.confirm(request, request.path):
            return asked
        if request.POST.get("action") == "rotate":
            return self._rotate(endpoint)
        self.check_word("show")
        try:
            secret = repairs.show_secret(endpoint, by=self.owner.by)
        except SecretUnreadableError as error:
            raise ConflictError(
                "The secret cannot be read here. Rotate it, or ask the operator."
            ) from error
        message = "The secret is shown here once."
        return show_once(request, message, request.path, secret)

    def _rotate(self, endpoint: Endpoint) -> HttpResponse:
        if Capability.MANAGE not in self.owner.capabilities:
            raise ConflictError("Nothing was changed: you may only look.")
        self.check_word("rotate")
        form, hours = RotationForm(self.request.POST), 0
        if endpoints.may_overlap(endpoint):
            if not form.is_valid():
                return self._page(endpoint, form, status=400)
            hours = form.cleaned_data["overlap_h"]
        overlap, by = timedelta(hours=hours), self.owner.by
        secret = repairs.rotate(endpoint, overlap=overlap, by=by).secret
        message = (
            f"The old secret signs beside the new one for {hours} h: put the new one into your "
            "server until then."
            if hours
            else "The new secret signs from now on. Put it into your server at once."
        )
        return show_once(self.request, message, self.request.path, secret)

    def _page(
        self,
        endpoint: Endpoint,
        form: RotationForm | None = None,
        *,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            "endpoint": endpoint,
            "form": form or RotationForm(),
            "secret": secret_once(self.request),
            "secrets": endpoint.endpointsecret_set.current(timezone.now()),
            "may_overlap": endpoints.may_overlap(endpoint),
            "longest_overlap_h": LONGEST_H,
        }
        return self.render("secret", context, status=status)
