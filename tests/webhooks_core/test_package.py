"""The wheel delivers in a project that has nothing else of this repository: that of the documentation."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.docs.samples import filled, sample
from tests.receiver import receiver
from tests.tools import needs, output_of, pip

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs("bash", "git")]

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = "your-own-project.md"
SETTINGS = ("ALLOWED_HOSTS = []", 'ALLOWED_HOSTS = ["testserver"]')
OPTIONAL = ("redis", "rest_framework", "django_stubs_ext", "psycopg")
# What the page leaves to the reader: to run the verification, and to look at the admin.
READ = """
import json, sys
headers, body, secret = json.loads(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]
"""
VERIFY = f"""{READ}
verify(secret, headers, body)
try:
    verify(secret, headers, body + b" ")
except ValueError as error:
    print("refused:", error)
"""
VERIFY_AS_GATEWAY = f"""{READ}
sent = {{"X-Gateway-Signature": headers["X-Shop-Signature"]}}
print(verify(secret, sent, body), verify(secret, sent, body + b" "))
"""
ADMIN = """
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
User.objects.create_superuser("op", password="p")
staff = Client()
staff.login(username="op", password="p")
for page in ("endpoint/1/change/", "event/", "endpoint/failing/"):
    response = staff.get(f"/admin/webhooks_core/{page}")
    assert response.status_code == 200, (page, response.status_code)
assert finders.find("webhooks_core/admin.css")
"""


class Project:
    """A folder, and a virtual environment in it that holds the wheel and its dependencies."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.scripts = folder / "env" / "bin"
        self.run(sys.executable, "-m", "venv", "--without-pip", "env")
        constraints = folder / "constraints.txt"
        locked = (ROOT / "requirements/production.lock").read_text()
        pins = re.findall(r"^([\w.-]+)\S*?(==[\w.]+)", locked, re.MULTILINE)
        constraints.write_text("\n".join(map("".join, pins)))
        python = str(self.scripts / "python")
        # What is imported is compiled then, a small part of it all.
        arguments = (
            "install",
            "-q",
            "--no-compile",
            str(wheel),
            "-c",
            "constraints.txt",
        )
        pip("--python", python, *arguments, cwd=folder)

    def run(self, *command: str) -> str:
        """Run a command in the folder; return its standard output."""
        hidden = {"PYTHONPATH", "DJANGO_SETTINGS_MODULE"}
        variables = {
            name: value for name, value in os.environ.items() if name not in hidden
        }
        return output_of(
            command,
            cwd=self.folder,
            env=variables | {"PATH": f"{self.scripts}:{os.environ['PATH']}"},
        )

    def shell(self, script: str) -> str:
        return self.run("bash", "-euc", script)

    def python(self, program: str, *arguments: str) -> str:
        """Run a program as `manage.py shell` does."""
        start = "import os, django\nos.environ['DJANGO_SETTINGS_MODULE'] = 'mysite.settings'\n"
        return self.run("python", "-c", f"{start}django.setup()\n{program}", *arguments)

    def write(self, name: str, code: str) -> None:
        (self.folder / name).write_text(code)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build leaves files beside the source."""
    source = tmp_path_factory.mktemp("source")
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "webhooks_core", source / "webhooks_core", ignore=kept)
    for name in ("pyproject.toml", "LICENSE", f"docs/{PAGE}"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip("wheel", "-q", "--no-deps", "-w", "dist", ".", cwd=source)
    return next((source / "dist").glob("signpost_webhooks-*.whl"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Project:
    """The project of the page, with its tables."""
    project = Project(tmp_path_factory.mktemp("project"), wheel)
    project.shell(sample(PAGE, "sh", "own-start"))
    settings = project.folder / "mysite" / "settings.py"
    own = filled(
        sample(PAGE, "python", "own-engine"), {"…": Fernet.generate_key().decode()}
    )
    settings.write_text(filled(settings.read_text(), dict([SETTINGS])) + own)
    project.write("shop/webhooks.py", sample(PAGE, "python", "own-profile"))
    project.write("shop/apps.py", sample(PAGE, "python", "own-app"))
    project.shell(sample(PAGE, "sh", "own-migrate"))
    return project


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    files = subprocess.run(
        ["git", "ls-files", "webhooks_core"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if ".dist-info/" not in name}
    assert held == set(files.stdout.split())
    assert "webhooks_core/py.typed" in held


def check_that_nothing_optional_is_installed(project):
    import_all = (
        f"import importlib.util as u; print([n for n in {OPTIONAL} if u.find_spec(n)])"
    )
    assert project.run("python", "-c", import_all) == "[]\n"
    place = project.run(
        "python", "-c", "import webhooks_core; print(webhooks_core.__file__)"
    )
    assert place.startswith(str(project.scripts.parent))


def check_that_its_settings_and_migrations_are_complete(project):
    project.run("python", "manage.py", "check", "--fail-level", "WARNING")
    project.run("python", "manage.py", "makemigrations", "--check", "--dry-run")


def deliver(project: Project, owner: str) -> tuple[str, str, str]:
    """Publish the event of the page; return the request's headers and body, and the secret."""
    with receiver(204) as server:
        publish = filled(
            sample(PAGE, "python", "own-publish"),
            {"http://127.0.0.1:9000/": server.url, 'owner="7"': f'owner="{owner}"'},
        )
        secret = project.python(publish).strip()
        sent = project.run("python", "manage.py", "webhooks_dispatch")
    assert sent == "1 attempts\n"
    [request] = server.requests
    assert json.loads(request.body)["data"] == {"item": "lamp"}
    assert request.headers["User-Agent"] == "Signpost"
    return json.dumps(request.headers), request.body.decode(), secret


def check_that_the_documented_project_delivers_what_it_signed(project):
    project.write("shop/webhooks.py", sample(PAGE, "python", "own-profile"))
    verify = sample("receiving-webhooks.md", "python", "verify")
    printed = project.python(verify + VERIFY_AS_GATEWAY, *deliver(project, "7"))
    assert printed == "True False\n"
    project.python(ADMIN)


def check_that_the_documented_project_signs_by_its_own_scheme(project):
    profile = filled(
        sample(PAGE, "python", "own-profile"), {'="timestamped"': '="base64"'}
    )
    project.write("shop/signing.py", sample(PAGE, "python", "own-scheme"))
    project.write("shop/webhooks.py", f"from shop import signing\n{profile}")
    verify = sample(PAGE, "python", "own-verify") + VERIFY
    message = project.python(verify, *deliver(project, "8"))
    assert message == "refused: no signature fits secret, timestamp and body\n"


def check_that_a_log_line_stays_out_of_the_standard_output(project):
    program = (
        "import structlog; structlog.stdlib.get_logger('shop').warning('seen', n=1)"
    )
    assert project.python(program) == ""


def test_the_documented_project_is_complete_and_delivers(project):
    """One test: with several, more than one worker would make the project."""
    check_that_nothing_optional_is_installed(project)
    check_that_its_settings_and_migrations_are_complete(project)
    check_that_the_documented_project_delivers_what_it_signed(project)
    check_that_the_documented_project_signs_by_its_own_scheme(project)
    check_that_a_log_line_stays_out_of_the_standard_output(project)
