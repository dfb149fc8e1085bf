"""How people of a tenant get to the pages of its webhooks: a link opens a session, once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.events import Origin
from gateway.identity import Caller
from gateway.models import PortalLink
from gateway.portal import cookies, links, pages
from gateway.subscriptions import Subscriptions
from gateway.throttles import CallerThrottle
from webhooks_core.errors import TooManyRequestsError
from webhooks_core.pages.base import Capability, Door, Owner, PageView

SAFE = ("GET", "HEAD")
State = PortalLink.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor(Owner):
    """A tenant, and the person who has opened a link to its portal."""

    link: PortalLink
    form_token: str


class PortalDoor(Door):
    """Admits who has a session of the portal. The pages may be framed."""

    base_template = "gateway/portal/page.html"
    extra_settings = ("description", "active")
    asks_for_words = True

    def serve(self, view: PageView) -> PageView:
        # Django's token is in a cookie that frames refuse: enter() checks one of the session.
        @csrf_exempt
        @pages.framed
        @wraps(view)
        def served(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            storage = cookies.MessageStorage(request)
            request._messages = storage  # type: ignore[attr-defined] # noqa: SLF001 - Django's place
            try:
                return view(request, *args, **kwargs)
            except Http404:
                return pages.say(request, pages.NO_PAGE, 404)
            except PermissionDenied:
                return pages.say(request, pages.NOT_ALLOWED, 403)

        return served

    def enter(self, request: HttpRequest) -> Owner | HttpResponse:
        token = _session(request)
        link = links.by_session(token)
        if link is None:
            return pages.say(request, pages.NO_SESSION, 403)
        if link.state(timezone.now()) != State.OPEN:
            return pages.say(request, pages.ENDED, 403)
        form_token = csrf_token(token)
        if request.method not in SAFE and not is_own_form(request, form_token):
            return pages.say(request, pages.FOREIGN_FORM, 403)
        # As in the API: the pages are for the principal that made the link.
        caller = Caller(link.tenant, link.principal, link.key_id)
        request.user = caller  # type: ignore[assignment]
        return Visitor(
            Subscriptions(Origin.of(caller, request), by=link.actor),
            frozenset(map(Capability, link.capabilities)),
            link=link,
            form_token=form_token,
        )

    def context(self, owner: Owner) -> Mapping[str, Any]:
        visitor = cast("Visitor", owner)
        return {"link": visitor.link, "csrf_token": visitor.form_token}

    def confirm(self, request: HttpRequest, address: str) -> HttpResponse | None:
        """Ask for nothing: a visitor has no password."""
        return None

    def check_rate(self, request: HttpRequest, action: str) -> None:
        """Count as for the principal that made the link; a creation before it, not behind."""
        throttle = CallerThrottle(action)
        if not throttle.allow_request(cast("Request", request), cast("APIView", None)):
            seconds = math.ceil(throttle.wait() or 1)
            raise TooManyRequestsError(
                f"Nothing was done: too many in a short time. Try again in {seconds} s."
            )


@csrf_exempt
@require_POST
@pages.framed
def close(request: HttpRequest) -> HttpResponse:
    """End the session of a visitor."""
    owner = PortalDoor().enter(request)
    if isinstance(owner, HttpResponse):
        return owner
    link = cast("Visitor", owner).link
    links.revoke(links.of_tenant(link.tenant).filter(pk=link.pk), timezone.now())
    return pages.say(request, pages.CLOSED, 200)


def csrf_token(session: str) -> str:
    """Return the token of the forms of a session."""
    return salted_hmac("gateway.portal.csrf", session).hexdigest()


def is_own_form(request: HttpRequest, token: str) -> bool:
    """Return True if a page of this origin sent a form with this token."""
    own = {settings.BASE_URL, f"{request.scheme}://{request.get_host()}"}
    given = request.POST.get("csrfmiddlewaretoken", "")
    return request.headers.get("Origin") in own and constant_time_compare(given, token)


@method_decorator([csrf_exempt, pages.framed, never_cache], name="dispatch")
class OpenLink(View):
    """GET asks and changes nothing: programs that check links follow them. POST opens.

    No other site opens a link of its own in somebody's browser.
    """

    http_method_names = ["get", "head", "post"]

    def dispatch(self, request: HttpRequest, token: str) -> HttpResponseBase:
        link = links.by_token(token)
        response = (
            pages.say(request, pages.UNKNOWN_LINK, 404)
            if link is None
            else super().dispatch(request, link)
        )
        response["Referrer-Policy"] = "no-referrer"  # the address holds the token
        return response

    def get(self, request: HttpRequest, link: PortalLink) -> HttpResponse:
        state = link.state(timezone.now())
        if state == State.OPEN and links.by_session(_session(request)) == link:
            return redirect("portal:start")  # a page that frames it was loaded again
        if state != State.UNUSED:
            return pages.say(request, pages.OVER[state], 410)
        return render(request, "gateway/portal/open.html", {"link": link})

    def post(self, request: HttpRequest, link: PortalLink) -> HttpResponse:
        # Browsers of before 2023 name no site.
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return pages.say(request, pages.FOREIGN_FORM, 403)
        session = links.open_once(link)
        if session is None:
            link.refresh_from_db()
            return pages.say(request, pages.OVER[link.state(timezone.now())], 410)
        response = redirect("portal:start")
        seconds = int(links.SESSION_FOR.total_seconds())
        cookies.write(response, cookies.SESSION, session, max_age=seconds)
        return response


def _session(request: HttpRequest) -> str:
    return request.COOKIES.get(cookies.name_of(cookies.SESSION), "")
