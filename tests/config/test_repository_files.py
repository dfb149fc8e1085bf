"""What contributors' tools read (CI, hooks, forms) names targets, versions and programs that exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.docs.samples import ROOT, make_targets

CI = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
JOBS: dict[str, dict[str, Any]] = CI["jobs"]
MATRIX = [
    job["strategy"]["matrix"]["python"] for job in JOBS.values() if "strategy" in job
]
COMMANDS = [
    step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step
]
HOOKS = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())[
        "repos"
    ]
    for hook in repository["hooks"]
]


def test_ci_runs_the_commands_of_the_local_run():
    local = re.findall(
        r"^(?:DATABASE_URL=\S+ REDIS_URL=\S+ )?(make .+)$",
        (ROOT / ".ci/run").read_text(),
        re.MULTILINE,
    )
    assert sorted(map(shlex.split, COMMANDS)) == sorted(map(shlex.split, local))


def test_ci_names_make_targets_that_exist():
    words = [shlex.split(command) for command in COMMANDS]
    assert {program for program, *_ in words} == {"make"}
    assert {target for _, target, *_ in words} <= make_targets()


def test_ci_runs_every_python_that_the_package_and_the_makefile_allow():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    searched = re.findall(r"python(3\.\d+)", (ROOT / "Makefile").read_text())
    assert len(MATRIX) == 2
    for versions in MATRIX:
        assert versions == sorted(searched, key=lambda version: int(version[2:]))
        assert project["requires-python"] == f">={versions[0]}"
    allowed = SpecifierSet(project["requires-python"])
    pythons = [
        step["with"]["python-version"]
        for job in JOBS.values()
        for step in job["steps"]
        if "with" in step
    ]
    assert all(version in allowed for version in pythons if "matrix" not in version)


def test_ci_uses_the_services_of_compose():
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    services = JOBS["postgresql-redis"]["services"]
    assert services.keys() == {"postgres", "redis"}
    for name, service in services.items():
        assert service["image"] == composed[name]["image"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_a_module_of_the_environment(hook):
    python, option, module, *_ = shlex.split(hook["entry"])
    assert (python, option) == (".venv/bin/python", "-m")
    assert importlib.util.find_spec(module)
    assert re.search(rf"-m {re.escape(module)}\b", (ROOT / "Makefile").read_text())


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github").rglob("*.*")), ids=lambda path: path.name
)
def test_a_file_for_github_names_files_and_commands_that_exist(path):
    text = path.read_text()
    assert text.endswith("\n")
    for name in re.findall(r"\b[A-Z_]+\.md\b", text):
        assert (ROOT / name).exists(), name
    for target in re.findall(r"\bmake ([a-z-]+)", text):
        assert target in make_targets()
    if path.parent.name == "ISSUE_TEMPLATE":
        form = yaml.safe_load(text)
        assert form.keys() >= {"name", "description", "body"}
        assert all(
            "label" in field["attributes"]
            for field in form["body"]
            if field["type"] != "markdown"
        )
