"""FastAPI: `uvicorn fastapi_receiver:app`."""

import os

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from inbox import store
from signpost_receiver import SignatureError, verify

app = FastAPI()
LIMIT = 4 * 1024 * 1024  # deliveries can exceed 1 MiB


@app.post("/hook")
async def receive(request: Request):
    body = bytearray()  # the raw bytes; a model as parameter would parse them
    async for chunk in request.stream():
        body += chunk
        if len(body) > LIMIT:
            return Response(status_code=413)
    try:
        event = verify(os.environ["SIGNPOST_SECRET"], request.headers, bytes(body))
    except SignatureError:
        return Response(status_code=401)
    await run_in_threadpool(store, os.environ["INBOX"], event, bytes(body))
    return Response(status_code=204)
