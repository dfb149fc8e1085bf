"""Lock files pin every package by hash, and name no registry and no path of a machine."""

from __future__ import annotations

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.running import ROOT

PYTHON = sorted([*ROOT.glob("requirements/*.lock"), *ROOT.glob("benchmarks/*.lock")])
NODE = sorted(
    path
    for path in (
        *ROOT.glob("tests/**/package-lock.json"),
        *ROOT.glob("benchmarks/*/package-lock.json"),
    )
    if "node_modules" not in path.parts
)


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_lock_names_no_host_and_no_path(path):
    for line in path.read_text().splitlines():
        assert "://" not in line
        assert not line.startswith("--")
        assert not re.search(r"(^|[\s@])/\w", line)


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_of_a_lock_has_hashes(path):
    packages = re.split(r"^(?=[A-Za-z0-9])", path.read_text(), flags=re.MULTILINE)[1:]
    assert packages
    assert all("==" in package and "--hash=sha256:" in package for package in packages)


@pytest.mark.parametrize("path", NODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_node_lock_names_no_registry(path):
    assert '"resolved"' not in path.read_text()


def test_development_has_the_same_versions_as_production():
    runtime = re.findall(
        r"^[a-z0-9][^ ]*==[^ ]+",
        (ROOT / "requirements/production.lock").read_text(),
        re.MULTILINE,
    )
    developed = (ROOT / "requirements/development.lock").read_text()
    assert runtime
    assert [pin for pin in runtime if pin not in developed] == []


def test_what_a_package_needs_with_an_extra_is_locked_with_it():
    """Otherwise pip 23 takes the newest version, which has no hash, and installs nothing."""
    lines = (ROOT / "requirements/development.lock").read_text().splitlines()
    pins = [Requirement(line[:-2]) for line in lines if re.match(r"\w.* \\$", line)]
    locked = {canonicalize_name(pin.name): pin.extras for pin in pins}
    needed = [
        requirement
        for name in locked
        for requirement in _requirements(name)
        if requirement.extras
    ]
    assert needed
    assert [
        str(requirement)
        for requirement in needed
        if not requirement.extras <= locked[canonicalize_name(requirement.name)]
    ] == []


def _requirements(name: str) -> list[Requirement]:
    """Return what an installed package needs in this environment, without its own extras."""
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # of another platform
        return []
    requirements = map(Requirement, lines)
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]
