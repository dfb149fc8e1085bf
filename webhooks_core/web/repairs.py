"""What an owner asks of one subscription and does about it: the use cases of API, MCP and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webhooks_core import endpoints, profiles
from webhooks_core.ids import is_id
from webhooks_core.models import Delivery, Endpoint, EndpointChange, ReplayJob
from webhooks_core.network.custom_headers import HeaderError
from webhooks_core.owners import (
    changes,
    delivery_search,
    endpoint_state,
    replay_jobs,
    replays,
    why,
)
from webhooks_core.owners.changes import Actor
from webhooks_core.owners.delivery_search import DeliveryFilter, FoundPage
from webhooks_core.owners.endpoint_state import EndpointState
from webhooks_core.owners.replay_jobs import Preview, ReplayRunningError, Selection
from webhooks_core.owners.replays import NotSubscribedError, RemovedError
from webhooks_core.secrets import HIDDEN, SecretUnreadableError
from webhooks_core.web.errors import (
    BadRequestError,
    ConflictError,
    GoneError,
    NotFoundError,
)

NOTHING_SENT = "The subscription is disabled: nothing would be sent."
NOT_WAITING = (
    "The delivery has ended, or an attempt is in progress: nothing was changed."
)
DECLARED = "This subscription is part of the configuration and read-only."


@dataclass(frozen=True, slots=True)
class Settings:
    """What a subscription sends beside the contract's headers; values are masked."""

    custom_headers: Mapping[str, str]
    standard_headers: bool


@dataclass(frozen=True, slots=True)
class Rotated:
    """A new secret, and until when the old one signs beside it; None if it ended at once."""

    secret: str
    old_secret_ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Repairs:
    """The deliveries, replays and settings of one subscription, for `by`, who owns it."""

    subscription: Endpoint
    by: Actor

    def state(self) -> EndpointState:
        is_shown = not endpoints.may_be_internal(self.subscription)
        return endpoint_state.describe(self.subscription, with_response=is_shown)

    def search(self, wanted: DeliveryFilter, *, cursor: str, size: int) -> FoundPage:
        """Return a page of deliveries. Raises 400 for the cursor."""
        own = Endpoint.objects.filter(pk=self.subscription.pk)
        try:
            return delivery_search.search(own, wanted, cursor=cursor, size=size)
        except ValueError as error:
            raise BadRequestError(f"{error}") from error

    def delivery(self, public_id: str) -> Delivery:
        """Return a delivery with its event. Raises 404, or 410 for one of before retention."""
        prefix = profiles.get(self.subscription.profile).delivery_prefix
        if is_id(public_id, prefix):
            rows = Delivery.objects.select_related("event", "endpoint")
            own = rows.filter(endpoint=self.subscription, public_id=public_id)
            if (delivery := own.first()) is not None:
                return delivery
        if why.is_past_retention(public_id, prefix, timezone.now()):
            raise GoneError("Such an old delivery was removed with its event.")
        raise NotFoundError("There is no such delivery.")

    def resend(self, public_id: str) -> Delivery:
        """Send the event of a delivery again; return the delivery that is sent. Raises 404, 409, 410.

        While one is pending, it is that one.
        """
        delivery = self.delivery(public_id)
        try:
            return replays.resend(delivery, by=self.by)
        except RemovedError as error:
            raise GoneError("The event was removed for its age.") from error
        except NotSubscribedError as error:
            raise ConflictError(NOTHING_SENT) from error

    def retry_now(self, public_id: str) -> Delivery:
        """Make a pending delivery the next request. Raises 404, 409, 410."""
        return self._changed(public_id, replays.retry_now)

    def cancel(self, public_id: str) -> Delivery:
        """Fail a pending delivery for good. Raises 404, 409, 410."""
        return self._changed(public_id, replays.cancel)

    def _changed(self, public_id: str, change: Any) -> Delivery:
        delivery = self.delivery(public_id)
        if not change(delivery, by=self.by):
            raise ConflictError(NOT_WAITING)
        return self.delivery(public_id)

    def preview(self, selection: Selection) -> Preview:
        return replay_jobs.preview(self.subscription, selection)

    def start_replay(self, selection: Selection) -> ReplayJob:
        """Start a replay. Raises 409 while another one runs, or if nothing would be sent."""
        try:
            return replay_jobs.start(self.subscription, selection, by=self.by)
        except ReplayRunningError as error:
            raise ConflictError(
                "Another replay to this subscription is running: wait, or cancel it."
            ) from error
        except NotSubscribedError as error:
            raise ConflictError(NOTHING_SENT) from error

    def replay(self, public_id: str) -> ReplayJob:
        """Return a replay. Raises 404."""
        if is_id(public_id, replay_jobs.PREFIX):
            rows = ReplayJob.objects.select_related("endpoint")
            own = rows.filter(endpoint=self.subscription)
            if (job := own.filter(public_id=public_id).first()) is not None:
                return job
        raise NotFoundError("There is no such replay.")

    def cancel_replay(self, public_id: str) -> ReplayJob:
        """Send nothing more of a replay. Raises 404, or 409 if it has ended."""
        if not replay_jobs.cancel(self.replay(public_id), by=self.by):
            raise ConflictError("The replay has ended: nothing was changed.")
        return self.replay(public_id)

    def why(self, event_id: str) -> why.Why:
        return why.explain(self.subscription, event_id)

    def rotate_secret(self, overlap: timedelta | None) -> Rotated:
        """Rotate the secret; without an overlap, by the product's default. Raises 400, 409."""
        self._check_own()
        can_overlap = endpoints.may_overlap(self.subscription)
        if overlap and not can_overlap:
            raise BadRequestError(
                "overlap_s must be 0: a delivery has one signature, by the newest secret."
            )
        if overlap is None:
            overlap = timedelta(days=1 if can_overlap else 0)
        secret = endpoints.rotate_secret(self.subscription, overlap=overlap, by=self.by)
        return Rotated(secret, timezone.now() + overlap if overlap else None)

    def settings(self) -> Settings:
        """Return the settings as they are now. Raises 409 if the headers cannot be read."""
        current = Endpoint.objects.get(pk=self.subscription.pk)
        try:
            text = current.custom_headers and current.custom_headers.decrypt()
        except SecretUnreadableError as error:
            raise ConflictError(
                "The custom headers cannot be read: set them again."
            ) from error
        names = orjson.loads(text) if text else {}
        return Settings(dict.fromkeys(names, HIDDEN), current.standard_headers)

    def set_headers(
        self,
        custom_headers: Mapping[str, str] | None = None,
        standard_headers: bool | None = None,
    ) -> Settings:
        """Change what is given; custom headers replace those before. Raises 400, 409."""
        self._check_own()
        try:
            with transaction.atomic():
                if custom_headers is not None:
                    endpoints.set_custom_headers(
                        self.subscription, custom_headers, by=self.by
                    )
                if standard_headers is not None:
                    endpoints.set_standard_headers(
                        self.subscription, wanted=standard_headers, by=self.by
                    )
        except HeaderError as error:
            raise BadRequestError(f"custom_headers: {error}.") from error
        except ValueError as error:
            raise BadRequestError(f"standard_headers: {error}.") from error
        return self.settings()

    def changes(self) -> QuerySet[EndpointChange]:
        return changes.of(self.subscription)

    def _check_own(self) -> None:
        if self.subscription.static_key is not None:
            raise ConflictError(DECLARED)
