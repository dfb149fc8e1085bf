"""What servers with OpenAI's API do in another way than OpenAI: a table, by the names of `server`.

To add a server, add its line, and its row in docs/models.md. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Server:
    """How a server differs.

    `path` is where a call goes below the base URL, with the call's own path and the model.
    `renamed` are fields that have another name there. `is_openai`: it refuses `max_tokens`, as
    OpenAI's newer models do.
    """

    path: str = "{path}"
    key_header: str = "Authorization"
    key: str = "Bearer {key}"
    api_version: str = ""  # of the query, when an entry names none
    takes_stream_options: bool = True
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_openai: bool = False


OPENAI = Server()
SERVERS: Mapping[str, Server] = {
    "openai": OPENAI,
    "azure": Server(
        path="openai/deployments/{model}/{path}",
        key_header="api-key",
        key="{key}",
        api_version="2024-10-21",
        is_openai=True,
    ),
    # It answers each unknown field with 422, and sends the usage unasked.
    "mistral": Server(
        takes_stream_options=False,
        renamed={"seed": "random_seed", "max_completion_tokens": "max_tokens"},
    ),
    "ollama": Server(renamed={"max_completion_tokens": "max_tokens"}),
}
