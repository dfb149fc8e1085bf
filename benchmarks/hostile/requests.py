"""The worst requests that we know for each route, by size, each within the limits of its route.

`n` is about the number of bytes; a request of 4n is the largest that the route accepts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
TENANT = {"X-Tenant-Id": "bench", "X-Principal-Id": "bench"}
REDIRECT = "http://127.0.0.1/callback"
NUMBERS = count()


@dataclass(frozen=True)
class Hostile:
    """What a caller can send to a route: `path` and `body` take the size."""

    name: str
    size: int  # the smallest of the three
    path: Callable[[int], str]
    body: Callable[[int], bytes] = lambda _: b""
    method: str = "POST"
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    needs_token: bool = False


def at(path: str) -> Callable[[int], str]:
    return lambda _: path


def as_json(make: Callable[[int], Any]) -> Callable[[int], bytes]:
    return lambda n: json.dumps(make(n), ensure_ascii=False).encode()


def repeated(unit: str) -> Callable[[int], str]:
    """Return texts of about n bytes that repeat a unit."""
    return lambda n: unit * (n // len(unit.encode()))


def nested(opening: str, inner: str = "x", closing: str = "") -> Callable[[int], str]:
    """Return texts of about n bytes: half of it elements in each other, half what is in them."""

    def text(n: int) -> str:
        depth = n // 2 // len(opening + closing)
        return opening * depth + inner * (n // 2 // len(inner)) + closing * depth

    return text


def get(name: str, path: Callable[[int], str], size: int, **more: Any) -> Hostile:
    return Hostile(name, size, path, method="GET", **more)


def graphql(name: str, make: Callable[[int], Any], size: int = 60_000) -> Hostile:
    return Hostile(name, size, at("/graphql"), as_json(make))


def ingest(name: str, text: Callable[[int], str], size: int) -> Hostile:
    def document(n: int) -> dict[str, str]:
        # A text that is stored already costs nothing.
        return {"text": f"{text(n)}{next(NUMBERS)}", "content_type": "text/html"}

    path = at("/v1/ingest")
    return Hostile(name, size, path, as_json(document), headers=TENANT)


def chat(name: str, make: Callable[[int], Any], size: int = 4_000_000) -> Hostile:
    def request(n: int) -> dict[str, Any]:
        return {"model": "echo", **make(n)}

    path = at("/v2/chat/completions")
    return Hostile(name, size, path, as_json(request), headers=TENANT)


def tool(name: str, tool: str, make: Callable[[int], Any], size: int) -> Hostile:
    def call(n: int) -> dict[str, Any]:
        params = {"name": tool, "arguments": make(n)}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    return Hostile(name, size, at("/mcp"), as_json(call), needs_token=True)


def multipart(n: int) -> bytes:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    return part * (n // len(part)) + b"--x--\r\n"


def messages(n: int, content: Any = "x") -> list[Any]:
    one = {"role": "user", "content": content}
    return [one] * (n // len(json.dumps(one)))


def deep(n: int) -> bytes:
    return b'{"query":' + b"[" * (n // 2) + b"]" * (n // 2) + b"}"


HOOK = {"url": "http://127.0.0.1:9/hook"}
FILTER = "query($f: BookFilter){books(filter: $f){totalCount}}"
REQUESTS = (
    get("an unknown path", repeated("/a"), 15_000),
    get("an unknown path of the API", lambda n: "/v1/" + "a/" * (n // 2), 15_000),
    get("a path of encoded characters", lambda n: "/" + "%C3%A9" * (n // 6), 15_000),
    get(
        "a query of many parameters",
        lambda n: "/oauth/authorize?" + "a=b&" * (n // 4),
        15_000,
    ),
    get(
        "the page of a delivery list",
        lambda n: "/v1/webhooks/subscriptions?page=" + "9" * n,
        15_000,
        headers=TENANT,
    ),
    Hostile(
        "many cookies",
        15_000,
        at("/accounts/login"),
        method="GET",
        headers={"Cookie": "{a=b; }"},
    ),
    graphql(
        "unknown keys of a variable",
        lambda n: {
            "query": FILTER,
            "variables": {"f": {f"k{number}": 1 for number in range(n // 9)}},
        },
    ),
    graphql(
        "a list for one variable",
        lambda n: {"query": FILTER, "variables": {"f": [{"x": 1}] * (n // 10)}},
    ),
    graphql("many aliases", lambda n: {"query": "{" + repeated("a:x ")(n) + "}"}),
    graphql(
        "many fragments",
        lambda n: {
            "query": "{...f0}"
            + "".join(
                f"fragment f{number} on Query{{...f{number + 1}}}"
                for number in range(n // 35)
            )
        },
    ),
    graphql("nested selections", lambda n: {"query": nested("{a", " ", "}")(n)}),
    graphql("a long comment", lambda n: {"query": "#" + "x" * n}),
    graphql("a long number", lambda n: {"query": f"{{getBookById(id: {'9' * n})}}"}),
    graphql(
        "a long search",
        lambda n: {"query": f'{{searchBooks(title: "{"a" * n}"){{name}}}}'},
    ),
    Hostile("nested JSON", 200_000, at("/graphql"), deep),
    Hostile(
        "many event types",
        14_000,
        at("/v1/webhooks/subscriptions"),
        as_json(lambda n: HOOK | {"event_types": ["x"] * (n // 5)}),
        headers=TENANT,
    ),
    Hostile(
        "a long address",
        14_000,
        at("/v1/webhooks/subscriptions"),
        as_json(lambda n: {"url": "http://" + "a." * (n // 2)}),
        headers=TENANT,
    ),
    Hostile(
        "many redirect addresses",
        14_000,
        at("/oauth/register"),
        as_json(lambda n: {"redirect_uris": [REDIRECT] * (n // 28)}),
    ),
    Hostile(
        "many fields of a form",
        14_000,
        at("/oauth/token"),
        lambda n: b"a=b&" * (n // 4),
        content_type=FORM,
    ),
    Hostile(
        "a long password",
        200_000,
        at("/accounts/login"),
        lambda n: b"username=a&password=" + b"x" * n,
        content_type=FORM,
    ),
    ingest(
        "some blockquotes of many paragraphs",
        lambda n: "<blockquote>" * (n // 150) + "<p>x" * (n // 8),
        12_000,
    ),
    ingest("blockquotes", nested("<blockquote>", "<p>x"), 500_000),
    ingest("document types", repeated("<!doctype"), 500_000),
    ingest(
        "line breaks in italics",
        lambda n: "<i>" * (n // 40) + "<br>a" * (n // 10) + "</i>" * (n // 40),
        5_000,
    ),
    ingest("bold in bold", nested("<b>", "x", "</b>"), 500_000),
    ingest("lists in lists", nested("<ul><li>"), 500_000),
    ingest("tables in tables", nested("<table><tr><td>"), 500_000),
    ingest("comments that do not end", repeated("<!--"), 500_000),
    ingest("attributes", lambda n: "<a " + repeated("b=c ")(n) + ">x</a>", 500_000),
    ingest("stars", repeated("*_`["), 500_000),
    ingest("entities", repeated("&amp;"), 500_000),
    Hostile(
        "many numbers in metadata",
        5_000_000,
        at("/v1/ingest"),
        lambda n: b'{"text":"x","metadata":{"a":[' + b"1," * (n // 2) + b"1]}}",
        headers=TENANT,
    ),
    Hostile(
        "many parts of a form",
        2_000_000,
        at("/v1/ingest"),
        multipart,
        content_type="multipart/form-data; boundary=x",
        headers=TENANT,
    ),
    chat("fractions", lambda n: {"x": [0.1] * (n // 5)}),
    chat("long integers", lambda n: {"x": [10**30] * (n // 33)}),
    chat("many messages", lambda n: {"messages": messages(n)}),
    chat(
        "many parts of a message",
        lambda n: {"messages": [{"role": "user", "content": messages(n)}]},
    ),
    chat("one long message", lambda n: {"messages": messages(40, "x" * n)[:1]}),
    chat("many names", lambda n: {f"k{number}": 1 for number in range(n // 14)}),
    tool(
        "a phrase of one word",
        "search_recordings",
        lambda n: {"query": f'"{"a " * (n // 2)}"'},
        250,
    ),
    tool(
        "a passage of Chinese",
        "search_recordings",
        lambda n: {"query": "海港灯塔" * (n // 12)},
        250,
    ),
    tool(
        "a long cursor",
        "search_recordings",
        lambda n: {"query": "a", "cursor": "x" * n},
        14_000,
    ),
    tool(
        "unknown arguments",
        "list_recordings",
        lambda n: {f"k{number}": 1 for number in range(n // 10)},
        14_000,
    ),
)
