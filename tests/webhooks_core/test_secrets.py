"""Secrets at rest: encrypted, masked, and never mistaken for their ciphertext."""

import base64
import copy
import logging
import pickle

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from tests.webhooks_core.factories import EndpointFactory
from webhooks_core import secrets
from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.secrets import MASK, EncryptedText, SecretUnreadableError

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@pytest.mark.spec("recording", "secret with a fixed whsec_ prefix")
def test_a_new_secret_is_the_prefix_and_32_random_bytes():
    secret = secrets.make()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert secrets.make() != secret


@pytest.mark.parametrize(
    "ciphertext",
    ["", "whsec_plain", "é", "gAAAAA", Fernet(OLD).encrypt(b"x").decode()],
    ids=["empty", "plain", "not ascii", "cut", "another key"],
)
def test_an_undecryptable_text_is_an_error_and_never_the_ciphertext(
    settings, ciphertext
):
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    encrypted = EncryptedText(ciphertext)
    with pytest.raises(SecretUnreadableError) as caught:
        encrypted.decrypt()
    assert ciphertext == "" or ciphertext not in str(caught.value)


@pytest.mark.parametrize("text", ["", "whsec_x", "é測🎧", "a\0b", "x" * 10_000])
def test_any_text_survives(text):
    assert EncryptedText.encrypt(text).decrypt() == text


def test_an_encrypted_text_is_shown_nowhere(caplog):
    encrypted = EncryptedText.encrypt("whsec_hidden")
    logging.getLogger("x").warning("made %s %r", encrypted, encrypted)
    shown = [
        str(encrypted),
        repr(encrypted),
        f"{encrypted}",
        f"{[encrypted]}",
        str(vars(encrypted)),
    ]
    shown += [caplog.text, str(pickle.dumps(encrypted)), repr(copy.deepcopy(encrypted))]
    assert not any("hidden" in text for text in shown)
    assert str(encrypted) == MASK == "whsec_••••••••"


@pytest.mark.django_db
@pytest.mark.usefixtures("plain")
def test_the_database_holds_the_ciphertext_and_the_model_decrypts_it():
    target = EndpointFactory.create()
    [row] = EndpointSecret.objects.all()
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM webhooks_core_endpointsecret")
        [(stored,)] = cursor.fetchall()
    assert not stored.startswith("whsec_")
    assert row.value.ciphertext == stored
    assert row.value.decrypt().startswith("whsec_")
    row.save()
    row.refresh_from_db()
    assert row.value.ciphertext == stored  # saving again encrypts nothing twice
    assert Endpoint.objects.get(pk=target.pk).custom_headers is None
