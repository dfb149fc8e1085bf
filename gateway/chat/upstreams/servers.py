"""What servers with OpenAI's API do in another way than OpenAI: a table, by the names of `server`.

To add a server, add its line, and a sample of an entry to docs/upstreams.md. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Server:
    """How a server differs.

    `path` is where a call goes below the base URL, with the call's own path and the model.
    `lacks` are fields that it refuses: `drop_params: true` leaves them out. `renamed` are
    fields that have another name there, always.
    """

    path: str = "{path}"
    key_header: str = "Authorization"
    key: str = "Bearer {key}"
    api_version: str = ""  # of the query, when an entry names none
    takes_stream_options: bool = True
    lacks: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)


OPENAI = Server()
AZURE = Server(
    path="openai/deployments/{model}/{path}",
    key_header="api-key",
    key="{key}",
    api_version="2024-10-21",
)
# What OpenAI's API has for its own platform: storing, caching, tiers of service.
PLATFORM = frozenset(
    {
        *("store", "metadata", "prompt_cache_key", "prompt_cache_retention"),
        *("safety_identifier", "service_tier", "verbosity", "web_search_options"),
    }
)
LOGPROBS = frozenset({"logprobs", "top_logprobs", "logit_bias"})
SERVERS: Mapping[str, Server] = {
    "openai": OPENAI,
    "azure": AZURE,
    # Its base URL has the whole path, and a version is optional.
    "azure-v1": Server(key_header="api-key", key="{key}"),
    "openrouter": OPENAI,
    "groq": Server(lacks=LOGPROBS),
    # It answers each unknown field with 422, and sends the usage unasked.
    "mistral": Server(
        takes_stream_options=False,
        lacks=(PLATFORM - {"metadata"}) | LOGPROBS | {"user", "modalities", "audio"},
        renamed={"seed": "random_seed", "max_completion_tokens": "max_tokens"},
    ),
    "gemini": Server(
        lacks=PLATFORM | LOGPROBS | {"seed", "frequency_penalty", "presence_penalty"}
    ),
    "vllm": OPENAI,
    "ollama": Server(renamed={"max_completion_tokens": "max_tokens"}),
    "llamacpp": OPENAI,
}
