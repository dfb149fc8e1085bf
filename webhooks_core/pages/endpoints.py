"""The list of an owner's endpoints with the form that adds one, and the page of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from webhooks_core import endpoints, filters
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import changes, charts, endpoint_state
from webhooks_core.owners.endpoint_state import EndpointState
from webhooks_core.pages import history, wording
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.forms import EndpointForm, receives_all
from webhooks_core.pages.owners import Capability, Owner
from webhooks_core.web.errors import ApiError

RECENT = 10


class Start(OwnerView):
    """All endpoints of the owner; POST adds one, and sends a test to it."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(self._form())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self._form(request.POST)
        if not form.is_valid():
            return self._page(form, status=400)
        self.door.check_rate(request, "create")
        try:
            created = self.owner.subscriptions.create(**form.values())
        except ApiError as error:
            form.refuse(error)
            return self._page(form, status=error.status_code)
        test = self._test(created.endpoint)
        return self.render("created", {"created": created, "test": test})

    def _form(self, data: Any = None) -> EndpointForm:
        extra = self.door.extra_settings
        return EndpointForm(self.owner.profile, extra=extra, data=data)

    def _test(self, endpoint: Endpoint) -> Delivery | None:
        """Send a test to a new endpoint, where it can receive one."""
        if not self.owner.may(Capability.SEND):
            return None
        try:
            self.door.check_rate(self.request, "test")
            return sent_test(self, endpoint)
        except (ApiError, RefusedError):
            return None  # the page says so: the secret must be shown

    def _page(self, form: EndpointForm, *, status: int = 200) -> HttpResponse:
        rows = list(self.owner.subscriptions.all())
        days = charts.of_endpoints(rows, now=timezone.now())
        states = states_of(self.owner, rows)
        shown = [(row, states[row.pk], days[row.pk]) for row in rows]
        context = {
            "rows": shown,
            "wrong": [
                each
                for each in shown
                if each[1].state.tone == "error" or each[0].refused_at
            ],
            "form": form,
            "quota": self.owner.profile.quota,
            "receives_all": receives_all(self.owner.profile),
        }
        return self.render("start", context, status=status)


def sent_test(view: OwnerView, endpoint: Endpoint) -> Delivery:
    """Send a test event, and return its delivery."""
    event = view.owner.subscriptions.send_test(endpoint.public_id)
    delivery = Delivery.objects.filter(event=event, endpoint=endpoint).first()
    if delivery is None:
        raise RefusedError("Nothing was sent: the endpoint is disabled or inactive.")
    return delivery


def states_of(owner: Owner, rows: Sequence[Endpoint]) -> dict[int, EndpointState]:
    """Return the states of endpoints by their keys, as the person may know them."""
    hidden = [row for row in rows if owner.hidden_response(row)]
    shown = [row for row in rows if not owner.hidden_response(row)]
    states = endpoint_state.describe_all(shown) if shown else {}
    if hidden:
        states |= endpoint_state.describe_all(hidden, with_response=False)
    return states


class EndpointView(OwnerView):
    """How an endpoint is, what it gets, and its settings; POST changes them."""

    refused_to = ("endpoint", "endpoint_id")

    def get(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        form = self._form(endpoint)
        form.restore(request.GET.get("kept", ""))
        return self._page(endpoint, form)

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        refuse_static(endpoint)
        form = self._form(endpoint, request.POST)
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        if form.cleaned_data["url"] != endpoint.url:
            address = f"{request.path}?{form.kept()}#settings"
            if asked := self.door.confirm(request, address):
                return asked
        try:
            self.owner.subscriptions.update(endpoint, **form.values())
        except ApiError as error:
            form.refuse(error)
            return self._page(endpoint, form, status=error.status_code)
        return self.done("The settings were saved.", request.path)

    def _form(self, endpoint: Endpoint, data: Any = None) -> EndpointForm:
        extra = self.door.extra_settings
        profile = self.owner.profile
        return EndpointForm(profile, extra=extra, data=data, endpoint=endpoint)

    def _page(
        self,
        endpoint: Endpoint,
        form: EndpointForm,
        *,
        status: int = 200,
        **tested: Any,
    ) -> HttpResponse:
        recent = Delivery.objects.filter(endpoint=endpoint).order_by("-pk")
        rows = recent.select_related("event").defer("event__body")[:RECENT]
        context = {
            "endpoint": endpoint,
            "state": states_of(self.owner, [endpoint])[endpoint.pk],
            "changes": history.lines(
                changes.of(endpoint).select_related("endpoint")[:RECENT]
            ),
            "charts": charts.of_endpoint(
                endpoint,
                now=timezone.now(),
                periods=(charts.PERIODS["24h"], charts.PERIODS["7d"]),
            ),
            "form": form,
            "recent": [(row, *wording.state(row)) for row in rows],
            "secrets": endpoint.endpointsecret_set.current(timezone.now()),
            "receives_all": receives_all(self.owner.profile),
        }
        if "filter" in form.fields and self.owner.may(Capability.VIEW_PAYLOAD):
            context["events"] = self.owner.events().defer("body")[:RECENT]
        return self.render("endpoint", context | tested, status=status)


@method_decorator(require_POST, name="dispatch")
class FilterTest(EndpointView):
    """Which parts of the filter in the form an event fails; nothing is stored."""

    acts_with = Capability.VIEW_PAYLOAD

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        endpoint = self.owner.endpoint(endpoint_id)
        form = self._form(endpoint, request.POST)
        if "filter" not in form.fields:
            raise Http404
        if not form.is_valid():
            return self._page(endpoint, form, status=400)
        event_id = request.POST.get("event", "")
        if (event := self.owner.event(event_id)) is None:
            raise RefusedError("There is no such event any more: choose another one.")
        source = form.cleaned_data["filter"] or {}
        reasons = filters.compiled(source).why(orjson.loads(bytes(event.body)))
        return self._page(endpoint, form, tested=event, reasons=reasons)


def refuse_static(endpoint: Endpoint) -> None:
    if endpoint.static_key is not None:
        raise RefusedError(
            "Nothing was changed: the operator's configuration declares this endpoint."
        )


@method_decorator(require_POST, name="dispatch")
class EndpointAction(OwnerView):
    """Something that a person does with an endpoint; refused, it leads back to its page."""

    refused_to = ("endpoint", "endpoint_id")

    def post(self, request: HttpRequest, endpoint_id: str) -> HttpResponse:
        return self.act(self.owner.endpoint(endpoint_id))

    def act(self, endpoint: Endpoint) -> HttpResponse:
        """Return the page that shows the result. Raises RefusedError."""
        raise NotImplementedError


class SendTest(EndpointAction):
    acts_with = Capability.SEND

    def act(self, endpoint: Endpoint) -> HttpResponse:
        self.door.check_rate(self.request, "test")
        delivery = sent_test(self, endpoint)
        address = self.address("delivery", delivery.public_id)
        return self.done("The test event is sent: its result appears here.", address)


class Enable(EndpointAction):
    def act(self, endpoint: Endpoint) -> HttpResponse:
        if not endpoint.may_be_enabled:
            raise RefusedError("Nothing was changed: it is not disabled.")
        endpoints.enable(endpoint, by=self.owner.by)
        address = self.address("endpoint", endpoint.public_id)
        return self.done("Enabled: what waits is sent now.", address)


class Delete(EndpointAction):
    def act(self, endpoint: Endpoint) -> HttpResponse:
        refuse_static(endpoint)
        self.check_word("delete")
        self.owner.subscriptions.delete(endpoint)
        return self.done("The endpoint was deleted.", self.address("start"))
