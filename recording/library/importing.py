"""Import recordings of an account and publish their summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from recording.accounts import owners
from recording.library import event_data, files, reading, search
from recording.models import Recording
from recording.webhooks import PROFILE, SUMMARY_COMPLETED
from webhooks_core import publishing
from webhooks_core.models import Event


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import; `event` is None if nothing was published."""

    recording: Recording
    is_new: bool
    event: Event | None
    ignored: tuple[str, ...]


def import_recording(
    *, account: AbstractUser, raw: bytes, publish_event: bool = True
) -> Imported:
    """Store a recording file and publish summary.completed, both or neither.

    The first import of an audio_id publishes; a later one replaces the recording and
    publishes when its summaries or its report_id changed. Raises files.RecordingFileError, or
    owners.InactiveAccountError.
    """
    owners.check_active(account)
    file = files.read(raw)
    # Before the transaction: converting and trimming may take a while.
    readable = event_data.with_markdown(file.content)
    data = event_data.trimmed(readable) if publish_event else None
    with owners.active_account(account):
        recording, before = _store(account, file.content, readable)
        event = None
        if data is not None and _has_new_summaries(before, file.content):
            event = publishing.publish(
                profile=PROFILE,
                owner=owners.owner_id(account),
                event_type=SUMMARY_COMPLETED,
                data=data,
            )
    return Imported(recording, before is None, event, file.ignored)


def _store(
    account: AbstractUser, content: Mapping[str, Any], readable: Mapping[str, Any]
) -> tuple[Recording, dict[str, Any] | None]:
    """Create or replace a recording; return it and its content from before, if any."""
    columns = _columns(content, readable)
    recording, is_new = Recording.objects.select_for_update().get_or_create(
        account_id=account.pk, audio_id=content["audio_id"], defaults=columns
    )
    if is_new:
        return recording, None
    before = recording.content
    columns["updated_at"] = timezone.now()
    for name, value in columns.items():
        setattr(recording, name, value)
    recording.save(update_fields=list(columns))
    return recording, before


def _columns(content: Mapping[str, Any], readable: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that hold a recording's content, and its summaries as Markdown."""
    document, has_html = orjson.dumps(content), event_data.has_html(content)
    return {
        "document": document,
        "summaries": orjson.dumps(readable["summaries"]) if has_html else None,
        "size": len(document),
        # PostgreSQL refuses NUL in a text.
        "title": content.get("title", "").replace("\0", "\ufffd"),
        "recorded_at": _time(content.get("recorded_at")),
        "search_text": search.text_of(readable),
    }


def _time(text: str | None) -> datetime | None:
    """Return a recording's time, in UTC if it names no offset; None if there is none to store."""
    if text is None:
        return None
    try:
        return reading.utc(datetime.fromisoformat(text))
    except OverflowError:  # at the first or the last day that there is
        return None


def _has_new_summaries(
    before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> bool:
    """Return True for a new recording, and when its summaries or its report changed."""
    return before is None or any(
        before.get(name) != after.get(name) for name in ("summaries", "report_id")
    )
