"""The pages of an account, below /accounts. Names with underscores are those that allauth links to."""

from __future__ import annotations

from django.urls import include, path

from recording.accounts.views import (
    confirm,
    pages,
    passwords,
    second_factor,
    second_step,
    security_log,
    sessions,
    tokens,
)
from recording.webhook_pages import AccountDoor
from webhooks_core.pages.urls import urls as webhook_pages

urlpatterns = [
    path("login", pages.Login.as_view(), name="account_login"),
    path("login/code", second_step.SecondStep.as_view(), name="mfa_authenticate"),
    path("logout", pages.Logout.as_view(), name="logout"),
    path("confirm", confirm.confirm, name="account-confirm"),
    path(
        "webhooks",
        include(webhook_pages(AccountDoor()), namespace="account-webhooks"),
    ),
    path("clients", pages.clients, name="account-clients"),
    path("tokens", tokens.tokens_page, name="account-tokens"),
    path("tokens/revoke", tokens.revoke, name="account-token-revoke"),
    path("password", passwords.Change.as_view(), name="account-password"),
    path("password/reset", passwords.Reset.as_view(), name="password-reset"),
    path(
        "password/reset/sent",
        passwords.ResetSent.as_view(),
        name="password-reset-sent",
    ),
    path(
        "password/reset/<uidb64>/<token>",
        passwords.ResetConfirm.as_view(),
        name="password-reset-confirm",
    ),
    path("security-log", security_log.security_log, name="account-security-log"),
    path("sessions", sessions.sessions, name="account-sessions"),
    path("two-step", second_factor.SecondFactors.as_view(), name="mfa_index"),
    path("two-step/app", second_factor.AddApp.as_view(), name="mfa_activate_totp"),
    path(
        "two-step/app/remove",
        second_factor.RemoveApp.as_view(),
        name="mfa_deactivate_totp",
    ),
    path(
        "two-step/passkeys",
        second_factor.AddPasskey.as_view(),
        name="mfa_add_webauthn",
    ),
    path(
        "two-step/passkeys/<int:pk>",
        second_factor.RenamePasskey.as_view(),
        name="mfa_edit_webauthn",
    ),
    path(
        "two-step/passkeys/<int:pk>/remove",
        second_factor.RemovePasskey.as_view(),
        name="mfa_remove_webauthn",
    ),
    path(
        "two-step/recovery-codes",
        second_factor.RecoveryCodes.as_view(),
        name="mfa_generate_recovery_codes",
    ),
]
