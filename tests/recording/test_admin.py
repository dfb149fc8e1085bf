from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from recording.accounts import owners, personal_tokens
from recording.models import PersonalToken, Recording
from recording.webhooks import PROFILE
from tests.factories import UserFactory
from tests.recording.conftest import imported
from tests.webhooks_core.admin.looking import SCRIPT, looker, page, queries_of
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db

RECORDINGS = "/admin/recording/recording/"
TOKENS = "/admin/recording/personaltoken/"
ENDPOINTS = "/admin/webhooks_core/endpoint/"


def add(client, account, **fields):
    """Send the form that imports a recording."""
    return client.post(f"{RECORDINGS}add/", {"account": account.pk, **fields})


# ── Recordings ──────────────────────────────────────────────────────────────────────


def test_recordings_are_listed_and_searched_without_their_documents(admin_client, user):
    imported(user, "aud_1")
    imported(user, "aud_2")
    assert "aud_1" in page(admin_client, RECORDINGS)
    assert "aud_1" not in page(admin_client, f"{RECORDINGS}?q=aud_2")
    assert "aud_1" in page(admin_client, f"{RECORDINGS}?q=ada")
    assert '"document"' not in "".join(queries_of(admin_client, RECORDINGS))


def test_untrusted_text_is_shown_escaped_and_cut(admin_client, user):
    title = "<script>x</script>" + "y" * 1900
    recording = imported(user, "<b>aud</b>", title=title).recording
    text = page(admin_client, f"{RECORDINGS}{recording.pk}/change/")
    assert "<script>x" not in text
    assert "&lt;script&gt;x" in text
    assert "<b>aud" not in page(admin_client, RECORDINGS)
    transcript = {"text": "z" * 100_000}
    long = imported(user, "aud_long", transcript=transcript).recording
    text = page(admin_client, f"{RECORDINGS}{long.pk}/change/")
    assert text.count("z") < 25_000
    assert "…" in text


def test_a_recording_cannot_be_edited(admin_client, user):
    recording = imported(user, "aud_1").recording
    address = f"{RECORDINGS}{recording.pk}/change/"
    response = admin_client.post(address, {"account": user.pk, "text": "{}"})
    assert response.status_code == 403
    assert Recording.objects.get().content == {"audio_id": "aud_1"}


@pytest.mark.spec("recording", "recordings come from the command and the admin")
@pytest.mark.parametrize("way", ["text", "file"])
def test_a_recording_is_imported_by_pasting_or_uploading(admin_client, user, way):
    text = '{"audio_id": "aud_1", "title": "é", "colour": 1}'
    value = text if way == "text" else SimpleUploadedFile("a.json", text.encode())
    response = add(admin_client, user, **{way: value}, publish_event="on")
    response = admin_client.get(response["Location"])
    text = response.content.decode()
    assert Recording.objects.get(account=user).content == {
        "audio_id": "aud_1",
        "title": "é",
    }
    assert Event.objects.get().public_id in text
    assert "Ignored unknown fields: colour." in text
    assert LogEntry.objects.filter(object_id=str(Recording.objects.get().pk)).exists()


def test_an_import_may_update_and_publish_nothing(admin_client, user):
    recording = imported(user, "aud_1").recording
    Event.objects.all().delete()
    text = '{"audio_id": "aud_1", "report_id": "rep_1"}'
    response = add(admin_client, user, text=text)
    assert response.status_code == 302
    assert Recording.objects.get(pk=recording.pk).content["report_id"] == "rep_1"
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("_case", "fields", "words"),
    [
        ("nothing", {}, "Paste the JSON or upload a file"),
        ("no JSON", {"text": "{\n nope"}, "line 2, column"),
        (
            "a field",
            {"text": '{"audio_id": "a",\n "title": 1}'},
            "title must be a string; nothing was stored.",
        ),
        ("NUL", {"text": '{"audio_id": "a\0"}'}, "Null characters are not allowed"),
        ("both", {"text": "{}", "file": SimpleUploadedFile("a", b"{}")}, "one of both"),
    ],
)
def test_a_faulty_import_is_reported_and_stores_nothing(
    admin_client, user, _case, fields, words
):
    response = add(admin_client, user, **fields)
    assert response.status_code == 200
    assert words in response.content.decode()
    assert not Recording.objects.exists()


# ── Tokens ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def created(user):
    return personal_tokens.create(user=user, days=9, name="laptop")


def revoke(client, token):
    fields = {"action": "revoke", "_selected_action": [token.pk]}
    return client.post(TOKENS, fields, follow=True)


def test_neither_a_token_nor_its_hash_is_ever_shown(admin_client, created):
    change = f"{TOKENS}{created.token.pk}/change/"
    for address in (TOKENS, change):
        text = page(admin_client, address)
        assert created.text not in text
        assert created.token.digest not in text
        assert created.token.display_prefix in text
    text = page(admin_client, f"{TOKENS}?q={created.token.digest[:20]}")
    assert created.token.display_prefix not in text


def test_revoking_ends_a_token_and_is_logged_once(admin_client, created):
    assert "Revoked 1." in revoke(admin_client, created.token).content.decode()
    assert personal_tokens.authenticate(created.text) is None
    assert "Revoked 0." in revoke(admin_client, created.token).content.decode()
    assert LogEntry.objects.filter(change_message="Revoked.").count() == 1


def test_a_token_is_neither_created_nor_edited_in_the_admin(admin_client, created):
    assert admin_client.get(f"{TOKENS}add/").status_code == 403
    change = f"{TOKENS}{created.token.pk}/change/"
    later = timezone.now() + timedelta(days=999)
    assert admin_client.post(change, {"expires_at": later}).status_code == 403


def test_a_view_permission_does_not_allow_to_revoke(client, created):
    looker(client, ["view_personaltoken"])
    assert created.token.display_prefix in page(client, TOKENS)
    revoke(client, created.token)
    assert PersonalToken.objects.get().revoked_at is None


# ── Whose an endpoint is ────────────────────────────────────────────────────────────


def pages(owner: object) -> list[str]:
    """Create an endpoint of an owner; return all pages that name the owner."""
    endpoint = EndpointFactory.create(profile=PROFILE, owner=str(owner))
    return [ENDPOINTS, f"{ENDPOINTS}{endpoint.pk}/change/"]


@pytest.mark.parametrize(("name", "shown"), [("ada", "ada"), (SCRIPT, "&lt;script")])
def test_every_page_names_the_user_as_text(admin_client, name, shown):
    for address in pages(UserFactory.create(username=name).pk):
        text = page(admin_client, address)
        assert shown in text, address
        assert SCRIPT not in text


@pytest.mark.parametrize("owner", ["4711", "nobody", "9" * 30, "²"])
def test_a_deleted_owner_is_shown_by_its_id(admin_client, owner):
    for address in pages(owner):
        assert owner in page(admin_client, address), address


def test_all_owners_of_a_page_are_read_at_once(admin_client, django_assert_num_queries):
    counts = []
    for number in (1, 4):
        for user in UserFactory.create_batch(number):
            EndpointFactory.create(profile=PROFILE, owner=str(user.pk))
        counts.append(len(queries_of(admin_client, ENDPOINTS)))
    assert counts[0] == counts[1]
    users = UserFactory.create_batch(2)
    with django_assert_num_queries(1):
        names = owners.names_of({str(user.pk) for user in users})
    assert list(names.values()) == [user.username for user in users]
