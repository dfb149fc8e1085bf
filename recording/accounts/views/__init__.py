"""The pages of an account."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

View = Callable[..., HttpResponse]
READ = ("GET", "HEAD")
FORM = (*READ, "POST")


def account_page(methods: Sequence[str]) -> Callable[[View], View]:
    """Show a page to an account that is logged in, for these methods; no cache keeps it."""

    def decorate(view: View) -> View:
        return never_cache(login_required(require_http_methods(methods)(view)))

    return decorate
