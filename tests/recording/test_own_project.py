"""Recording in somebody else's project: as docs/recording.md says, with OAuth and without it."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet

from tests import own_project
from tests.docs.samples import filled, sample
from tests.running import ROOT

RECORDING = ROOT / "docs" / "samples" / "recording.json"

pytestmark = pytest.mark.slow

URLS = f"""{own_project.ADMIN_URLS}
urlpatterns.append(path("", include("recording.urls")))
"""
PROGRAM = """
from io import StringIO
from django.contrib.auth.models import User
from webhooks_core import tasks
from webhooks_core.models import Delivery

ada = User.objects.create_superuser("ada", password="p")
out = StringIO()
call_command("create_personal_token", "ada", days=1, stdout=out)
api = Client(headers={"Authorization": f"Bearer {out.getvalue().strip()}"})

def post(path, body):
    return api.post(path, body, content_type="application/json")

assert post("/v1/webhooks", {"url": "https://127.0.0.1/"}).status_code == 400
body = {"url": "https://93.184.216.34:9/", "events": ["summary.completed"]}
created = post("/v1/webhooks", body)
assert created.status_code == 201, created.content
call_command("import_recording", sys.argv[1], account="ada", stdout=out)
[delivery] = api.get(f"/v1/webhooks/{created.json()['endpoint_id']}/deliveries").json()["items"]
assert delivery["event_type"] == "summary.completed", delivery

staff = Client()
staff.force_login(ada)
for page in ("recording/recording/", "recording/personaltoken/", "webhooks_core/endpoint/1/change/"):
    assert staff.get(f"/admin/{page}").status_code == 200, page
refused = Client().get("/v1/webhooks")
assert refused.status_code == 401
ada.is_active = False
ada.save()
assert api.get("/v1/webhooks").status_code == 401
ada.delete()
tasks.remove_ended_owners()  # a worker runs it
assert not Delivery.objects.exists()
print(refused["WWW-Authenticate"])
"""


REGISTER = """
document = Client().get("/.well-known/oauth-authorization-server").json()
assert document["issuer"] == "https://recording.example"
client = {"redirect_uris": ["https://client.example/callback"]}
registered = Client().post("/oauth/register", client, content_type="application/json")
assert registered.status_code == 201, registered.content
"""


def run(tmp_path, *, settings="", urls="", program="") -> str:
    key = {"…": Fernet.generate_key().decode()}
    documented = filled(sample("recording.md", "python", "own-recording"), key)
    return own_project.run(
        tmp_path,
        settings=own_project.WITH_ADMIN + documented + settings,
        urls=URLS + urls,
        program=program + PROGRAM.replace("sys.argv[1]", repr(str(RECORDING))),
    )


def test_the_documented_settings_and_addresses_are_all_it_needs(tmp_path):
    assert run(tmp_path) == 'Bearer realm="signpost"\n'


# As config/settings.py has it, whose libraries' settings are in a file of their own.
OAUTH = f"""
import runpy
third_party = runpy.run_path({str(ROOT / "config" / "third_party.py")!r})
INSTALLED_APPS += ["recording.oauth.apps.OAuthConfig", "oauth2_provider"]
OAUTH2_PROVIDER = third_party["OAUTH2_PROVIDER"] | {{"OIDC_ISS_ENDPOINT": BASE_URL}}
OAUTH2_PROVIDER_APPLICATION_MODEL = "recording_oauth.Application"
OAUTH2_PROVIDER_GRANT_MODEL = "recording_oauth.Grant"
OAUTH_ALLOWED_REDIRECTS = ["https://client.example/callback"]
OAUTH_CIMD_HOSTS = []
OAUTH_CLIENTS_PER_ADDRESS = 10
OAUTH_RATES = {{"register": "", "authorize": "", "token": "", "login": ""}}
TRUSTED_PROXY_COUNT = 0
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "recording.accounts.hashers.RandomSecretHasher",
]
SILENCED_SYSTEM_CHECKS = third_party["SILENCED_SYSTEM_CHECKS"]
"""
OAUTH_URLS = """
from recording.oauth.views import api
urlpatterns += [
    path(".well-known/oauth-authorization-server", api.authorization_server),
    path("oauth/register", api.register),
]
"""


def test_oauth_is_an_app_beside_it(tmp_path):
    challenge = run(tmp_path, settings=OAUTH, urls=OAUTH_URLS, program=REGISTER)
    metadata = "https://recording.example/.well-known/oauth-protected-resource"
    assert f'resource_metadata="{metadata}/v1/webhooks"' in challenge
