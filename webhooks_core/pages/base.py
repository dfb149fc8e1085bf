"""What all pages share: who looks at them and may do what, refusals, the way back, and a secret once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from webhooks_core import profiles
from webhooks_core.api.subscriptions import SubscriptionService
from webhooks_core.changes import Actor
from webhooks_core.errors import (
    ApiError,
    ConflictError,
    GoneError,
    NotFoundError,
)
from webhooks_core.models import Endpoint
from webhooks_core.profiles import WebhookProfile
from webhooks_core.secrets import EncryptedText


class Capability(StrEnum):
    VIEW = "view"
    VIEW_SECRET = "view_secret"  # noqa: S105 - a name
    MANAGE = "manage"  # and send: tests, resends


EVERYTHING = frozenset(Capability)
PageView = Callable[..., HttpResponseBase]


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of webhooks, and the person who acts for it."""

    subscriptions: SubscriptionService
    capabilities: frozenset[Capability] = EVERYTHING

    @property
    def profile(self) -> WebhookProfile:
        return profiles.get(self.subscriptions.profile)

    @property
    def by(self) -> Actor:
        """The person, for the log."""
        return self.subscriptions.by


class Door(ABC):
    """How a product admits people. `base_template` frames each page, whose block is `page`."""

    base_template: str
    # What an endpoint of the product has besides its URL and event types: description, active.
    extra_settings: Sequence[str] = ()
    # True where pages may be framed: a click that a foreign page has borrowed types no word.
    asks_for_words: bool = False

    def serve(self, view: PageView) -> PageView:
        """Return a view as its address serves it."""
        return view

    def context(self, owner: Owner) -> Mapping[str, Any]:
        """Return what `base_template` needs besides the user."""
        return {}

    @abstractmethod
    def enter(self, request: HttpRequest) -> Owner | HttpResponse:
        """Return whose pages a request may see, or what asks for a login."""

    @abstractmethod
    def confirm(self, request: HttpRequest, address: str) -> HttpResponse | None:
        """Return what asks for the password again and then leads to `address`; None if recent."""

    @abstractmethod
    def check_rate(self, request: HttpRequest, action: str) -> None:
        """Count an action: create, test or resend. Raises TooManyRequestsError."""


@method_decorator(never_cache, name="dispatch")
class OwnerView(View):
    """A page of an owner.

    A refused action leads to the page `refused_to`, which takes the arguments of these names.
    """

    http_method_names = ["get", "head", "post"]
    door: Door = None  # type: ignore[assignment] # set by urls()
    sees_with: ClassVar[Capability] = Capability.VIEW
    acts_with: ClassVar[Capability] = Capability.MANAGE
    refused_to: ClassVar[tuple[str, ...]] = ("start",)
    owner: Owner

    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        entered = self.door.enter(request)
        if isinstance(entered, HttpResponse):
            return entered
        self.owner = entered
        needed = self.acts_with if request.method == "POST" else self.sees_with
        if not {Capability.VIEW, needed} <= entered.capabilities:
            raise PermissionDenied
        try:
            return super().dispatch(request, *args, **kwargs)
        except (NotFoundError, GoneError, Endpoint.DoesNotExist) as error:
            raise Http404 from error
        except ApiError as error:
            messages.error(request, str(error))
            page, *names = self.refused_to
            return redirect(self.address(page, *(kwargs[name] for name in names)))

    def check_word(self, word: str) -> None:
        """Raise ConflictError unless the word was typed, where the door asks for words."""
        typed = self.request.POST.get("word", "").strip().lower()
        if self.door.asks_for_words and typed != word:
            raise ConflictError(f"Nothing was changed: type {word} to confirm.")

    def address(self, name: str, *args: str) -> str:
        """Return the address of a page of the same owner."""
        match = self.request.resolver_match
        namespace = match.namespace if match else None
        return reverse(f"webhooks:{name}", args=args, current_app=namespace)

    def render(
        self, template: str, context: dict[str, Any], *, status: int = 200
    ) -> HttpResponse:
        shared = {
            "base_template": self.door.base_template,
            "owner": self.owner,
            "may": {each.value: each in self.owner.capabilities for each in Capability},
            "asks_for_words": self.door.asks_for_words,
            **self.door.context(self.owner),
        }
        path = f"webhooks/{template}.html"
        return render(self.request, path, shared | context, status=status)

    def done(self, message: str, address: str) -> HttpResponse:
        """Redirect to a page that shows a message."""
        messages.success(self.request, message)
        return redirect(address)


def show_once(request: HttpRequest, text: str, page: str, secret: str) -> HttpResponse:
    """Redirect to a page that shows a text and, this once, a secret: a reload repeats nothing.

    The cookie of messages names the page, and holds the secret encrypted.
    """
    hidden = EncryptedText.encrypt(secret).ciphertext
    messages.success(request, text, extra_tags=f"{page} {hidden}")
    return redirect(page)


def secret_once(request: HttpRequest) -> str:
    """Return the newest secret for which `show_once` has led to this page, otherwise ""."""
    secret = ""
    # Not one that is empty: it would answer with a cookie.
    for message in messages.get_messages(request) or ():
        page, _, hidden = (message.extra_tags or "").partition(" ")
        if page == request.path:
            secret = EncryptedText(hidden).decrypt()
    return secret
