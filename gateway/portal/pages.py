"""What the pages of the portal have besides those of webhooks: frames, and pages that say no."""

from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple, cast

from csp.decorators import csp_replace
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt

from gateway.models import PortalLink
from webhooks_core.pages.base import PageView

State = PortalLink.State


class Notice(NamedTuple):
    title: str
    text: str


ASK_AGAIN = "Ask for a new link where you got this one."
UNKNOWN_LINK = Notice(
    "This link is not valid",
    "Copy the whole link, or ask for a new one where you got it.",
)
OVER = {
    State.OPEN: Notice(
        "This link was used", f"It opens the portal once, in one browser. {ASK_AGAIN}"
    ),
    State.EXPIRED: Notice("This link has expired", ASK_AGAIN),
    State.REVOKED: Notice("This link was revoked", ASK_AGAIN),
}
NO_SESSION = Notice(
    "The portal is not open in this browser",
    "Open it by a link of your provider. If you have just done so, your browser blocks the "
    "cookie of this page: allow it, and ask for a new link.",
)
ENDED = Notice("Your session has ended", f"To go on: {ASK_AGAIN}")
CLOSED = Notice("The portal is closed", ASK_AGAIN)
FOREIGN_FORM = Notice(
    "This page was too old",
    "The form did not come from a page that was shown in this session. Nothing was changed. Go "
    "back, reload the page, and try again.",
)
NO_PAGE = Notice(
    "There is no such page",
    "What was here may have been deleted, or belongs to somebody else.",
)
NOT_ALLOWED = Notice(
    "You may not do this",
    "The link that you have opened does not allow it. Nothing was changed.",
)


def say(request: HttpRequest, notice: Notice, status: int) -> HttpResponse:
    """Answer with a page that says why there is nothing else."""
    return render(
        request, "gateway/portal/notice.html", {"notice": notice}, status=status
    )


def framed(view: PageView) -> PageView:
    """Let PORTAL_FRAME_ANCESTORS frame what a view answers; without any, nobody may."""

    @wraps(view)
    def served(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        ancestors = settings.PORTAL_FRAME_ANCESTORS
        if not ancestors:
            return view(request, *args, **kwargs)
        policy = csp_replace({"frame-ancestors": list(ancestors)})
        open_view = policy(xframe_options_exempt(view))
        return open_view(request, *args, **kwargs)

    return cast("PageView", served)
