"""A project of somebody else: its own settings and addresses, in a process of its own."""

import os
import sys
from pathlib import Path

from tests.running import ROOT
from tests.tools import output_of

# Nothing but what Django itself needs; importing `config` fails.
BARE = """
import sys
sys.modules["config"] = None
SECRET_KEY = "k" * 60
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "own_urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "own.sqlite3"}}
STATIC_URL = "static/"
INSTALLED_APPS = []
MIDDLEWARE = []
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
}]
"""
# With the admin, as `django-admin startproject` writes it, in short.
WITH_ADMIN = f"""{BARE}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "America/Chicago"
INSTALLED_APPS += [
    "django.contrib." + name
    for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
]
MIDDLEWARE += [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES[0]["OPTIONS"]["context_processors"] += [
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
]
"""
ADMIN_URLS = """
from django.contrib import admin
from django.urls import include, path
urlpatterns = [path("admin/", admin.site.urls)]
"""
START = """
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("check", fail_level="WARNING", stdout=sys.stderr)
call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
call_command("migrate", verbosity=0)
"""


def run(folder: Path, *, settings: str, urls: str, program: str) -> str:
    """Check, migrate, and run a program in such a project; return its standard output."""
    (folder / "own_settings.py").write_text(settings)
    (folder / "own_urls.py").write_text(urls)
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{folder}:{ROOT}",
        "DJANGO_SETTINGS_MODULE": "own_settings",
    }
    return output_of(
        [sys.executable, "-c", f"import sys\n{START}\n{program}"],
        cwd=folder,
        env=variables,
    )
