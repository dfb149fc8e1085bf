"""The address of a portal link: a page with one button, which uses the link up."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from gateway.models import PortalLink
from gateway.portal import cookies, links, pages

State = PortalLink.State


@method_decorator([csrf_exempt, pages.framed, never_cache], name="dispatch")
class OpenLink(View):
    """GET asks and changes nothing: programs that check links follow them. POST opens.

    The browser says that the form is of this site: no other one opens a link of its own in
    somebody's browser. `Origin` would not do: it is `null` behind `no-referrer`.
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
        return render(request, "gateway/portal/open.html", {"link": link})

    def post(self, request: HttpRequest, link: PortalLink) -> HttpResponse:
        if request.headers.get("Sec-Fetch-Site") != "same-origin":
            return pages.say(request, pages.FOREIGN_FORM, 403)
        session = links.open_once(link)
        if session is None:
            link.refresh_from_db()
            return pages.say(request, pages.OVER[link.state(timezone.now())], 410)
        response = redirect("portal:start")
        seconds = int(links.SESSION_FOR.total_seconds())
        cookies.write(response, cookies.SESSION, session, max_age=seconds)
        return response


def _is_in_this_browser(request: HttpRequest, link: PortalLink) -> bool:
    current = links.by_session(cookies.read(request, cookies.SESSION))
    return current is not None and current.pk == link.pk
