"""Another name of the model in JSON that keeps every other byte."""

import json
from typing import Any

import orjson
import pytest

from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import with_model as renamed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model": "a", ', b'"x": 1.0}'),
        (b'{"messages":[{"content":"caf\\u00e9 \\/ \\"model\\": \\"z\\""}], "model" :\n"a"', b"}"),
        (b'{"tools":[{"model":{"model":"q"}},{"model":"a"}],"model":"a","x":{"model":"a"}', b"}"),
        (b'{"text":"\\"model\\":\\"a\\"","model":"a"', b"}"),
        (b'{"n":1e999,"model":"a"', b"}"),
        (b'{"model":"a",', b'"n":123456789012345678901234567890}'),
    ],
)  # fmt: skip
def test_every_other_byte_stays(before, after):
    raw = before + after
    value = json.loads(raw)
    new = renamed(raw, value, 'new "name"')
    assert json.loads(new) == {**value, "model": 'new "name"'}
    cut = raw.replace(b'"a"', b"")
    assert new.replace(b'"new \\"name\\""', b"") in {cut, raw.replace(b'"a"', b"", 1)} or (
        len(new) == len(raw) + len(b'"new \\"name\\""') - len(b'"a"')
    )  # fmt: skip


def test_the_same_name_changes_nothing():
    raw = b'{ "model" : "a" }'
    assert renamed(raw, {"model": "a"}, "a") is raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"a","model":"b"}',
        b'{"\\u006dodel":"a","model":"b"}',
        b'{"model":"a","\\u006d\\u006fdel":"b"}',
        b'{"model":"a","model":"new"}',
        b'{"x":[' + b'{"model":"a"},' * 20 + b'0],"model":"b"}',
    ],
)
def test_no_other_member_of_the_name_is_left(raw):
    """Readers differ in which of two members counts: what is sent has one."""
    new = renamed(raw, json.loads(raw), "new")
    pairs: list[list[str]] = []
    json.loads(new, object_pairs_hook=lambda items: pairs.append([k for k, _ in items]))
    assert pairs[-1].count("model") == 1
    assert json.loads(new)["model"] == "new"


def test_work_on_a_body_is_bounded(monkeypatch):
    reads: list[bytes] = []

    def read(raw: bytes) -> Any:
        reads.append(raw)
        return json.loads(raw)

    monkeypatch.setattr(orjson, "loads", read)
    raw = b'{"x":[' + b'{"model":"a"},' * 5000 + b'0],"model":"b"}'
    renamed(raw, json.loads(raw), "new")
    assert len(reads) == chunks.MAX_MEMBERS
