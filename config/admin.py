"""What the admin shows of packages of others, where their own classes fail."""

from __future__ import annotations

from axes.admin import AccessAttemptAdmin
from axes.models import AccessAttempt
from django.contrib import admin


class FailedLoginAdmin(AccessAttemptAdmin):  # type: ignore[misc]
    """Failed logins without the action of django-axes, which is an internal error.

    It reads an attribute that only a login's request has. Each login removes expired ones.
    """

    actions = ()


admin.site.unregister(AccessAttempt)
admin.site.register(AccessAttempt, FailedLoginAdmin)
