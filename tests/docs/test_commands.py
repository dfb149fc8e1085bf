"""Every `manage.py …` that a page, the image or a unit names exists, with the options it is given."""

from __future__ import annotations

import re
import subprocess
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from functools import cache

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from benchmarks import __main__ as benchmarks
from tests.docs.samples import DOCS
from tests.tools import needs

ROOT = settings.BASE_DIR
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name for name in ("Makefile", "Dockerfile", "compose.yaml")),
]
# In a shell `manage.py web --port 1`, in a list of words `"manage.py", "web", "--port", "1"`.
CALL = re.compile(r"manage\.py(?:\"?,? +\"?)([a-z][a-z_]+)([^\n`|&]*)")
# Of Dockerfile and compose.yaml, what is no setting of ours.
OTHERS = re.compile(r"PATH|PYTHON\w+|PIP_\w+|POSTGRES_\w+|BASE|LOCK")


def calls(text: str) -> Iterator[tuple[str, set[str]]]:
    """Find the commands of a text, each with the long options of its line."""
    for command, rest in CALL.findall(text.replace("\\\n", " ")):
        yield command, set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest))


@cache
def options(command: str) -> frozenset[str]:
    app = get_commands()[command]
    assert isinstance(app, str)
    loaded = load_command_class(app, command)
    assert isinstance(loaded, BaseCommand)
    return frozenset(_options(loaded.create_parser("manage.py", command)))


def _options(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, _SubParsersAction):
            for below in action.choices.values():
                yield from _options(below)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_benchmarks_and_options_that_exist(path):
    text = path.read_text().replace("\\\n", " ")
    for name, rest in re.findall(r"-m benchmarks ([a-z]+)([^\n`|&]*)", text):
        known = set(
            _options(benchmarks.command(name).create_parser("benchmarks", name))
        )
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest)) <= known


def test_commands_are_found_however_they_are_written():
    text = 'CMD ["python", "manage.py", "web", "--host", "::"]\n`manage.py demo` --no'
    assert [*calls(text)] == [("web", {"--host"}), ("demo", set())]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_commands_and_options_that_exist(path):
    for command, given in calls(path.read_text()):
        assert command in get_commands()
        assert given <= options(command), command


def test_the_image_and_compose_set_known_variables_alone():
    documented = set(
        re.findall(
            r"^\| `([A-Z_]+)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE
        )
    )
    image = (ROOT / "Dockerfile").read_text()
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    given = set(re.findall(r"(?:^|\s)([A-Z][A-Z_]+)=", image))
    for service in compose["services"].values():
        given |= set(service.get("environment", {}))
    unknown = {word for word in given - documented if not OTHERS.fullmatch(word)}
    assert given & documented
    assert unknown == set()


@needs("git")
def test_what_the_image_copies_is_in_the_repository():
    image = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", image, re.MULTILINE)
    named = {name for names in copied for name in names.split()} - {"."}
    locks = {"production.lock", "production-otel.lock"}
    assert {f"requirements/{name}" for name in locks} <= named
    if not (ROOT / ".git").exists():
        pytest.skip("this copy is no repository")
    listed = subprocess.check_output(["git", "ls-files", *named], cwd=ROOT, text=True)
    assert set(listed.split()) == named


def test_compose_waits_for_services_that_say_when_they_are_ready():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    waited = {
        (name, how["condition"])
        for service in services.values()
        for name, how in service.get("depends_on", {}).items()
    }
    assert {name for name, _ in waited} == {"postgres", "redis", "migrate"}
    for name, condition in waited:
        is_checked = "test" in services[name].get("healthcheck", {})
        assert (condition == "service_healthy") == is_checked
