"""Flask: `flask --app flask_receiver run`."""

import os

from flask import Flask, request
from inbox import store
from signpost_receiver import SignatureError, verify

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 4 * 1024 * 1024  # deliveries can exceed 1 MiB


@app.post("/hook")
def receive():
    body = request.get_data()  # the raw bytes, before request.json
    try:
        event = verify(os.environ["SIGNPOST_SECRET"], request.headers, body)
    except SignatureError:
        return "", 401
    store(os.environ["INBOX"], event, body)
    return "", 204
