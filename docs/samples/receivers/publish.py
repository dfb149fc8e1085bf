"""Publish an event, and verify what arrives: `python publish.py`."""

import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen  # noqa: TID251 - a program of others

from signpost_receiver import SignatureError, verify

DRIFT = {"subject": "embeddings", "metric": "psi", "value": 0.31, "threshold": 0.2}


def call(method, path, body=None):
    """Return the response of Signpost; urllib raises for a refusal."""
    headers = {
        "Authorization": f"Bearer {os.environ['SIGNPOST_KEY']}",
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    url = os.environ["SIGNPOST_URL"] + path
    with urlopen(Request(url, data, headers, method=method), timeout=30) as response:  # noqa: S310
        return json.loads(response.read() or "null")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.server.event = verify(self.server.secret, self.headers, body)
        except SignatureError:
            self.send_response(401)
        else:
            self.send_response(204)
        self.end_headers()


server = HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver)
server.event = None
subscription = call(
    "POST",
    "/v1/webhooks/subscriptions",
    {
        "url": f"http://127.0.0.1:{server.server_port}/hook",
        "event_types": ["drift.detected"],
    },
)
server.secret = subscription["secret"]
published = call("POST", "/v1/events", {"type": "drift.detected", "data": DRIFT})
while server.event is None or server.event["id"] != published["id"]:
    server.handle_request()
print("verified", published["id"])  # noqa: T201
call("DELETE", f"/v1/webhooks/subscriptions/{subscription['id']}")
