"""Words to ask a web server in a process of its own."""

from pathlib import Path
from typing import Any

import requests

from tests.connections import connected, read
from tests.running import environment

CHAT = {"model": "echo", "messages": [{"role": "user", "content": "one two"}]}


def error_text(answer: requests.Response, shape: tuple[Any, ...]) -> Any:
    """Return the text of an error that has the shape of its product."""
    if not shape:
        return answer.text
    assert answer.headers["Content-Type"].startswith("application/json"), answer.text
    value = answer.json()
    for step in shape:
        value = value[step]
    return value


def local(folder: Path) -> dict[str, str]:
    return environment(
        DATABASE_URL=f"sqlite:///{folder / 'db.sqlite3'}",
        GATEWAY_CONFIG=str(folder / "gateway.yaml"),
    )


def ask(url: str, path: str, method: str = "GET", **options: Any) -> requests.Response:
    options = {"timeout": 60, "allow_redirects": False} | options
    # A prepared request keeps slashes that `requests` would take away.
    request = requests.Request(method, url, headers=options.pop("headers", None))
    if "json" in options:
        request.json = options.pop("json")
    prepared = request.prepare()
    prepared.url = url + path
    with requests.Session() as session:
        return session.send(prepared, **options)


def raw(url: str, path: str, *lines: str) -> tuple[int, bytes]:
    """Ask with these header lines alone; return the status and the body."""
    head = [f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""]
    with connected(url) as client:
        client.sendall("\r\n".join(head).encode())
        head_, _, body = read(client).partition(b"\r\n\r\n")
    return int(head_.split()[1]), body
