"""Check a signature: what differs between a request as it was received and as it was sent."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import payloads
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.owners import Capability
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.signing.diagnosis import Fault, Part, diagnose
from webhooks_core.signing.verification import Received

MAX_HEADERS = 32_768
UNKNOWN = (
    "The event of this request is not known here, so the difference cannot be named. Either the"
    " request was sent to another endpoint, or the body was changed on its way: paste the bytes"
    " as they came, before they were parsed."
)


class CheckForm(forms.Form):
    """A request as the receiver got it. The secret is not asked for: it is stored here."""

    endpoint = forms.ChoiceField()
    headers = forms.CharField(
        max_length=MAX_HEADERS,
        error_messages={"required": "Paste the headers that your server received."},
    )
    body = forms.CharField(
        strip=False,
        error_messages={"required": "Paste the body that your server received."},
    )

    def __init__(self, endpoints: list[Endpoint], data: Any = None) -> None:
        super().__init__(data)
        choices: Any = self.fields["endpoint"]
        choices.choices = [(each.public_id, each.url) for each in endpoints]

    def clean_headers(self) -> dict[str, str]:
        """Return the headers by name in lower case."""
        lines = self.cleaned_data["headers"].splitlines()
        pairs = [line.partition(":") for line in lines if line.strip()]
        if any(not colon for _, colon, _ in pairs):
            raise forms.ValidationError("Each line is a name, a colon and a value.")
        return {name.strip().lower(): value.strip() for name, _, value in pairs}


class CheckSignature(OwnerView):
    acts_with = Capability.VIEW_PAYLOAD

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(CheckForm(self._endpoints()))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = CheckForm(self._endpoints(), request.POST)
        if not form.is_valid():
            return self._page(form, status=400)
        endpoint = self.owner.endpoint(form.cleaned_data["endpoint"])
        headers, body = form.cleaned_data["headers"], form.cleaned_data["body"]
        delivery = self._delivery(endpoint, headers, body)
        faults = self._faults(endpoint, delivery, headers, body)
        return self._page(form, is_checked=True, faults=faults, delivery=delivery)

    def _endpoints(self) -> list[Endpoint]:
        return list(self.owner.subscriptions.all())

    def _faults(
        self,
        endpoint: Endpoint,
        delivery: Delivery | None,
        headers: dict[str, str],
        body: str,
    ) -> list[Fault]:
        try:
            secrets = endpoint.secrets(now=timezone.now())
        except SecretUnreadableError as error:
            raise RefusedError("The secret of this endpoint cannot be read.") from error
        sent = None if delivery is None else payloads.sent(delivery, secrets)
        # A browser sends each line break of a form as two characters.
        bodies = (body.replace("\r\n", "\n").encode(), body.encode())
        diagnoses = [
            diagnose(_received(headers, each), secrets=secrets, sent=sent)
            for each in bodies
        ]
        faults = min(diagnoses, key=len)
        is_unexplained = sent is None and {fault.part for fault in faults} == {
            Part.SECRET,
            Part.BODY,
        }
        return [Fault(Part.BODY, UNKNOWN)] if is_unexplained else faults

    def _delivery(
        self, endpoint: Endpoint, headers: dict[str, str], body: str
    ) -> Delivery | None:
        """Return the delivery that a request was, by its header or its event's id."""
        received = _received(headers, body.encode())
        rows = Delivery.objects.select_related("event").filter(endpoint=endpoint)
        for lookup, value in (
            ("public_id", received.delivery_id),
            ("event__public_id", received.event_id or received.delivery_id),
        ):
            if value.isprintable() and 0 < len(value) <= 40:
                found = rows.filter(**{lookup: value}).order_by("-pk").first()
                if found is not None:
                    return found
        return None

    def _page(
        self, form: CheckForm, *, status: int = 200, **context: Any
    ) -> HttpResponse:
        profile = self.owner.profile
        context |= {
            "form": form,
            "header": profile.signature_header,
            "scheme": profile.scheme.description,
        }
        return self.render("check_signature", context, status=status)


def _received(headers: dict[str, str], body: bytes) -> Received:
    now = timezone.now().timestamp()
    return Received(path="/", headers=headers, body=body, at=now)
