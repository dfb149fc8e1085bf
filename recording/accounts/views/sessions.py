"""The page of an account's web sessions: seen, ended one by one, or all others together."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from recording.accounts import security_log, web_sessions
from recording.accounts.views import FORM, account_page


@account_page(FORM)
def sessions(request: HttpRequest) -> HttpResponse:
    """List the account's sessions; POST ends one (`session`), or all others (`others`)."""
    key = request.session.session_key
    listed = web_sessions.listed(request.user, current=key)
    if request.method != "POST":
        return render(request, "accounts/sessions.html", {"sessions": listed})
    if "others" in request.POST:
        ended = web_sessions.end_others(request.user, keep=key)
        security_log.record_own(security_log.Kind.SESSIONS_ENDED, request)
        messages.success(request, f"Other sessions that were ended: {ended}.")
        return redirect("account-sessions")
    public_id = request.POST.get("session", "")
    if any(one.is_current and one.id == public_id for one in listed):
        logout(request)
        return redirect("account_login")
    if not web_sessions.end(request.user, public_id):
        raise Http404
    security_log.record_own(security_log.Kind.SESSIONS_ENDED, request)
    messages.success(request, "The session was ended.")
    return redirect("account-sessions")
