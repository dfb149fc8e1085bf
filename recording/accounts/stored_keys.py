"""The encrypted keys of second factors, for a change of the keys that encrypt them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from allauth.mfa.models import Authenticator
from django.db import transaction

from webhooks_core.models.reencryption import StoredText
from webhooks_core.secrets import EncryptedText

NAMES = ("secret", "seed")  # of an authenticator app, of recovery codes


def stored_keys() -> Iterator[StoredText]:
    """Yield every encrypted key."""
    for row in Authenticator.objects.order_by("pk").iterator():
        for name in NAMES:
            if name in row.data:
                text = EncryptedText(row.data[name])
                yield StoredText(text, partial(_replace, row.pk, name))


@transaction.atomic
def _replace(pk: int, name: str, old: EncryptedText, new: EncryptedText) -> int:
    row = Authenticator.objects.select_for_update().filter(pk=pk).first()
    if row is None or row.data.get(name) != old.ciphertext:
        return 0
    row.data[name] = new.ciphertext
    row.save(update_fields=["data"])
    return 1
