"""The gateway in somebody else's project: as docs/gateway.md says, and without `config`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.docs.samples import sample

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = "gateway.md"

# What `django-admin startproject` writes, in short; whoever imports `config` fails.
SETTINGS = """
import sys
sys.modules["config"] = None
SECRET_KEY = "k" * 60
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "own_urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "own.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "America/Chicago"
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib." + name
    for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
"""
URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
PROGRAM = """
import django
django.setup()
from datetime import timedelta
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from gateway import keys
from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.models import Delivery, Endpoint

call_command("check", fail_level="WARNING")
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
call_command("migrate", verbosity=0)
key = keys.create(tenant="acme", principal="ada").text
api = Client(headers={"Authorization": f"Bearer {key}"})
URL = "/v1/webhooks/subscriptions"

def post(path, body):
    return api.post(path, body, content_type="application/json")

assert post(URL, {"url": "http://127.0.0.1:9/"}).status_code == 400
made = post(URL, {"url": "http://203.0.113.7/", "secret": "s" * 16})
assert made.status_code == 400, made.content  # addresses of documentation are not public
made = post(URL, {"url": "http://93.184.216.34:9/"})
assert made.status_code == 201, made.content
assert post("/v1/ingest", {"text": "A text."}).status_code == 201
call_command("emit_event", "drift.detected", "--tenant", "acme")
rows = api.get(f"{URL}/{made.json()['id']}/deliveries").json()["items"]
assert [row["event_type"] for row in rows] == ["drift.detected", "ingest.completed"]

User.objects.create_superuser("op", password="p")
staff = Client()
staff.login(username="op", password="p")
for page in (
    "gateway/document/", "gateway/policydecision/", "gateway/gatewaykey/add/",
    "webhooks_core/endpoint/1/change/", "webhooks_core/dispatcherlease/dashboard/",
):
    assert staff.get(f"/admin/{page}").status_code == 200, page
form = {"tenant": "acme", "principal": "bob", "name": "", "days": ""}
assert b"gw_key_" in staff.post("/admin/gateway/gatewaykey/add/", form).content
api.delete(f"{URL}/{made.json()['id']}")
assert dispatch(linger=timedelta(0)) == 0
assert set(Delivery.objects.values_list("last_error", flat=True)) == {"endpoint deleted"}
print("all of it works")
"""


@pytest.mark.spec("gateway", "in a project of one's own")
def test_the_documented_settings_and_addresses_are_all_it_needs(tmp_path):
    settings = sample(PAGE, "python", "own-settings")
    settings = settings.replace("…", Fernet.generate_key().decode())
    (tmp_path / "own_settings.py").write_text(SETTINGS + settings)
    (tmp_path / "own_urls.py").write_text(URLS + sample(PAGE, "python", "own-urls"))
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "DJANGO_SETTINGS_MODULE": "own_settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("all of it works\n")
