import json
import re

import pytest
from django.conf import settings

from config.operations import api_docs
from config.operations.api_docs import openapi

PUBLISHED = settings.BASE_DIR / "docs" / "api" / "openapi.json"


@pytest.mark.services  # the contract is the same with each kind of database
def test_the_document_is_the_published_one(client):
    # Made while a test had a product of its own, it describes that product too.
    api_docs._document.cache_clear()
    answer = client.get("/openapi.json")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer.content == PUBLISHED.read_bytes()
    assert json.loads(answer.content)["openapi"].startswith("3.1")


@pytest.mark.services
def test_a_document_does_not_depend_on_the_one_before():
    assert openapi() == openapi() == PUBLISHED.read_text("utf-8")


def test_an_unchanged_document_is_not_sent_again(client):
    tag = client.get("/openapi.json")["ETag"]
    again = client.get("/openapi.json", HTTP_IF_NONE_MATCH=tag)
    assert (again.status_code, again.content) == (304, b"")


def test_the_reference_loads_nothing_from_elsewhere_and_nothing_inline(client):
    answer = client.get("/docs")
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "https://" not in html
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", html)
    policy = answer["Content-Security-Policy"]
    assert "'unsafe" not in policy
    script = client.get("/docs?script=")
    assert script["Content-Type"].startswith("application/javascript")
    program = script.content.decode().replace("\\u002D", "-")
    assert '"/openapi.json"' in program
    assert '"validatorUrl": null' in program
