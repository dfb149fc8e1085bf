"""The address of a portal link: a page with one button, which uses the link up."""

from __future__ import annotations

import secrets

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from gateway.models import PortalLink
from gateway.portal import cookies, links, pages

VISITOR_LENGTH = 32
State = PortalLink.State


@method_decorator([csrf_exempt, pages.framed, never_cache], name="dispatch")
class OpenLink(View):
    """GET asks and changes nothing: programs that check links follow them. POST opens.

    The form repeats a cookie of the page. So no other site opens a link of its own in somebody's
    browser, and a browser without cookies does not use the link up. `Origin` would not do: it is
    `null` behind `no-referrer`.
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
        if state == State.OPEN and _is_in_this_browser(request, link):
            return redirect("portal:start")
        if state != State.UNUSED:
            return pages.say(request, pages.OVER[state], 410)
        visitor = _visitor(request) or secrets.token_hex(VISITOR_LENGTH // 2)
        context = {"link": link, "visitor": visitor}
        response = render(request, "gateway/portal/open.html", context)
        cookies.write(response, cookies.VISITOR, visitor)
        return response

    def post(self, request: HttpRequest, link: PortalLink) -> HttpResponse:
        visitor, given = _visitor(request), request.POST.get("visitor", "")
        if not visitor or not constant_time_compare(visitor, given):
            return pages.say(request, pages.NO_COOKIES, 403)
        session = links.open_once(link)
        if session is None:
            link.refresh_from_db()
            return pages.say(request, pages.OVER[link.state(timezone.now())], 410)
        response = redirect("portal:start")
        seconds = int(links.SESSION_FOR.total_seconds())
        cookies.write(response, cookies.SESSION, session, max_age=seconds)
        return response


def _visitor(request: HttpRequest) -> str:
    """Return the value of the page's cookie; "" without one."""
    value = cookies.read(request, cookies.VISITOR)
    return value if len(value) == VISITOR_LENGTH and value.isalnum() else ""


def _is_in_this_browser(request: HttpRequest, link: PortalLink) -> bool:
    current = links.by_session(cookies.read(request, cookies.SESSION))
    return current is not None and current.pk == link.pk
