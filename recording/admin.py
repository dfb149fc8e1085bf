"""Recordings and personal tokens for operators: view, import, revoke; nothing is edited."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django import forms
from django.contrib import admin
from django.contrib.auth.models import AbstractUser
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from recording.accounts import owners
from recording.models import PersonalToken, Recording
from recording.models.tokens import PersonalTokenQuerySet
from webhooks_core.admin.base import CappedAdmin

# Enough to recognise a recording of several megabytes.
DISPLAYED_CHARACTERS = 20_000


class ImportForm(forms.ModelForm[Recording]):
    """A recording file, pasted or uploaded."""

    text = forms.CharField(
        required=False,
        strip=False,
        label="JSON",
        widget=forms.Textarea(attrs={"rows": 20, "cols": 90}),
        help_text="Paste the file here, or upload it below (large ones only there).",
    )
    file = forms.FileField(required=False)
    publish_event = forms.BooleanField(
        required=False, initial=True, help_text="Send summary.completed to subscribers."
    )

    class Meta:
        model = Recording
        fields = ("account",)

    def clean_account(self) -> AbstractUser:
        account: AbstractUser = self.cleaned_data["account"]
        try:
            owners.check_active(account)
        except owners.InactiveAccountError as error:
            message = f"{error}; nothing was stored."
            raise forms.ValidationError(message[0].upper() + message[1:]) from error
        return account

    def clean(self) -> dict[str, Any]:
        # Not with the URL map: it loads an HTML parser, which only an import needs.
        from recording.library import files

        cleaned: dict[str, Any] = self.cleaned_data
        text, file = cleaned.get("text") or "", cleaned.get("file")
        if bool(text) == (file is not None):
            raise forms.ValidationError("Paste the JSON or upload a file, one of both.")
        raw = file.read(files.MAX_BYTES + 1) if file else text.encode()
        try:
            files.read(raw)
        except files.RecordingFileError as error:
            raise forms.ValidationError(f"{error}; nothing was stored.") from error
        return cleaned | {"raw": raw}


@admin.register(Recording)
class RecordingAdmin(CappedAdmin[Recording]):
    form = ImportForm
    list_display = ("audio_id", "account", "size", "created_at", "updated_at")
    list_select_related = ("account",)
    search_fields = ("audio_id", "account__username")
    indexed = ("audio_id", "account__username")
    ordering = ("-id",)
    autocomplete_fields = ("account",)
    import_fields: ClassVar = ("account", "text", "file", "publish_event")
    shown_fields: ClassVar = (*list_display, "json")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Recording]:
        # They have megabytes.
        rows = Recording.objects.defer("search_text", "document", "summaries")
        return rows.order_by("-id")

    def get_fields(self, request: HttpRequest, obj: Recording | None = None) -> Any:
        return self.import_fields if obj is None else self.shown_fields

    def get_readonly_fields(
        self, request: HttpRequest, obj: Recording | None = None
    ) -> Any:
        return () if obj is None else self.shown_fields

    def has_change_permission(
        self, request: HttpRequest, obj: Recording | None = None
    ) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: Recording, form: Any, change: bool
    ) -> None:
        from recording.library import importing

        account: AbstractUser = form.cleaned_data["account"]
        imported = importing.import_recording(
            account=account,
            raw=form.cleaned_data["raw"],
            publish_event=form.cleaned_data["publish_event"],
        )
        # The admin continues with `obj`, which becomes the new or the updated row.
        obj.pk, obj.audio_id = imported.recording.pk, imported.recording.audio_id
        event = imported.event.public_id if imported.event else "none"
        self.message_user(request, f"Imported {obj.audio_id}; event: {event}.")
        if imported.ignored:
            names = ", ".join(imported.ignored)
            self.message_user(request, f"Ignored unknown fields: {names}.", "WARNING")

    @admin.display(description="JSON")
    def json(self, obj: Recording) -> SafeString:
        text = orjson.dumps(obj.content, option=orjson.OPT_INDENT_2).decode()
        more = "\n…" if len(text) > DISPLAYED_CHARACTERS else ""
        return format_html(
            '<pre tabindex="0">{}</pre>', text[:DISPLAYED_CHARACTERS] + more
        )


@admin.register(PersonalToken)
class PersonalTokenAdmin(CappedAdmin[PersonalToken]):
    list_display = (
        "display_prefix",
        "user",
        "name",
        "state",
        "created_at",
        "expires_at",
        "last_used_at",
    )
    list_select_related = ("user",)
    search_fields = ("display_prefix", "user__username", "name")
    indexed = ("user__username",)
    ordering = ("-id",)
    fields = (*list_display, "revoked_at")
    readonly_fields = fields
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # a token's text is shown to its user alone

    def has_change_permission(
        self, request: HttpRequest, obj: PersonalToken | None = None
    ) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return super().has_change_permission(request)

    @admin.display
    def state(self, obj: PersonalToken) -> str:
        return obj.state(timezone.now())

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: PersonalTokenQuerySet) -> None:
        revoked = list(queryset.filter(revoked_at=None))
        queryset.revoke(timezone.now())
        for token in revoked:
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"Revoked {len(revoked)}.")


class SecondFactorAdmin(admin.ModelAdmin[Authenticator]):
    """Second factors, to remove those of an account that lost its device; no key is shown."""

    fields = readonly_fields = ("user", "type", "created_at", "last_used_at")
    list_display = ("user", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__username",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


admin.site.unregister([Authenticator, EmailAddress])
admin.site.register(Authenticator, SecondFactorAdmin)
