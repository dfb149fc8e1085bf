"""The packages of clients/ have types that follow the products, and can be published."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
import yaml
from django.conf import settings
from signpost_receiver import events

import gateway.webhooks
import recording.webhooks
from tests.clients.verifying import CLIENTS
from tests.running import ROOT
from tests.tools import needs, pip

PYTHON = "Programming Language :: Python :: 3."
PRODUCTS = (recording.webhooks, gateway.webhooks)
TYPES: dict[str, Any] = {
    name: kind for product in PRODUCTS for name, kind in product.EVENT_TYPES.items()
}


def fields(typed: Any) -> dict[str, bool]:
    """Return whether each field of a TypedDict is required."""
    hints = get_type_hints(typed, include_extras=True)
    return {
        name: typed.__total__ and get_origin(hint) is not NotRequired
        for name, hint in hints.items()
    }


def properties(schema: dict[str, Any]) -> dict[str, bool]:
    return {name: name in schema.get("required", []) for name in schema["properties"]}


def test_the_types_of_python_are_those_of_the_products():
    found = {
        get_args(get_type_hints(event)["type"])[0]: fields(
            get_type_hints(event)["data"]
        )
        for event in get_args(events.Event)
    }
    assert found == {name: properties(kind.schema) for name, kind in TYPES.items()}
    transcript = recording.webhooks.TRANSCRIPT_SCHEMA
    assert fields(events.Transcript) == properties(transcript)
    assert fields(events.Summary) == properties(recording.webhooks.SUMMARY_SCHEMA)
    segment = recording.webhooks.SEGMENT_SCHEMA["properties"]
    assert set(fields(events.Segment)) == set(segment)


def test_the_types_of_typescript_are_those_of_the_products():
    declared = (CLIENTS / "typescript" / "index.d.ts").read_text()
    named = dict(re.findall(r'Event<"([\w.]+)", (\w+)>', declared))
    assert set(named) == set(TYPES)
    for name, interface in named.items():
        body = re.search(rf"interface {interface} {{(.*?)}}", declared, re.DOTALL)
        assert body
        found = {
            field: not optional
            for field, optional in re.findall(r"^  (\w+)(\??):", body[1], re.MULTILINE)
        }
        assert found == properties(TYPES[name].schema), name


def test_the_packages_have_the_version_of_the_release():
    python = tomllib.loads((CLIENTS / "python" / "pyproject.toml").read_text())
    node = json.loads((CLIENTS / "typescript" / "package.json").read_text())
    versions = python["project"]["version"], node["version"]
    assert versions == (settings.VERSION, settings.VERSION)


def test_the_workflow_runs_each_python_that_the_packages_name():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    strategies = [job.get("strategy") for job in workflow["jobs"].values()]
    [pythons, again] = [chosen["matrix"]["python"] for chosen in strategies if chosen]
    assert pythons == again == ["3.11", "3.12", "3.13", "3.14"]
    for folder in (ROOT, CLIENTS / "python"):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        named = [
            "3." + text.removeprefix(PYTHON)
            for text in project["classifiers"]
            if text.startswith(PYTHON)
        ]
        assert (named, project["requires-python"]) == (pythons, f">={pythons[0]}")


def test_the_comparison_of_the_readme_names_every_package():
    names = {"python": "Python", "typescript": "TypeScript"}
    assert {folder.name for folder in CLIENTS.iterdir()} == names.keys()
    readme = (ROOT / "README.md").read_text()
    row = re.search(r"^\| client libraries \|([^|]*)", readme, re.MULTILINE)
    assert row
    assert [name for name in names.values() if name not in row[1]] == []


def test_the_sample_of_the_readme_runs():
    text = (CLIENTS / "python" / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    namespace: dict[str, Any] = {}
    exec(code[1], namespace)  # noqa: S102
    assert namespace["receive"]("whsec_x", {}, b"{}") == 401


@pytest.mark.slow
def test_the_package_of_python_is_built_with_its_types(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(CLIENTS / "python", source)
    pip("wheel", "-q", "--no-deps", "-w", "dist", ".", cwd=source)
    [wheel] = (source / "dist").glob("signpost_receiver-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if ".dist-info/" not in name}
    files = ("__init__.py", "events.py", "py.typed")
    assert held == {f"signpost_receiver/{name}" for name in files}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


@pytest.mark.slow
@needs("node", "npm")
def test_the_package_of_node_holds_code_types_and_licence(tmp_path):
    done = subprocess.run(
        ["npm", "pack", "--json", "--pack-destination", str(tmp_path)],
        cwd=CLIENTS / "typescript",
        capture_output=True,
        text=True,
        check=True,
    )
    [packed] = json.loads(done.stdout)
    names = {file["path"] for file in packed["files"]}
    assert names == {"LICENSE", "README.md", "index.d.ts", "index.js", "package.json"}
    assert (tmp_path / packed["filename"]).exists()
