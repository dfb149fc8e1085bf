"""LiteLLM's providers that have OpenAI's or Anthropic's API, and how Signpost calls each. Pure.

To add a provider, add its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider is in the gateway's configuration.

    `base_url` counts for a deployment without `api_base`; empty: it needs one. `suffix` is what
    LiteLLM adds to an `api_base` that does not end with it. `key` is the variable that LiteLLM
    reads without an `api_key`; empty: the server needs none.
    """

    key: str = ""
    base_url: str = ""
    upstream: str = "openai"
    server: str = "openai"
    suffix: str = ""
    has_responses: bool = False


OPENAI = Provider("OPENAI_API_KEY", "https://api.openai.com/v1", has_responses=True)
ANTHROPIC = Provider("ANTHROPIC_API_KEY", "https://api.anthropic.com", "anthropic")
OLLAMA = Provider("", "http://localhost:11434/v1", server="ollama", suffix="/v1")
VLLM = Provider("", server="vllm")
ANY = Provider()
PROVIDERS: Mapping[str, Provider] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "azure": Provider("AZURE_API_KEY", server="azure"),
    "openrouter": Provider(
        "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", server="openrouter"
    ),
    "groq": Provider("GROQ_API_KEY", "https://api.groq.com/openai/v1", server="groq"),
    "mistral": Provider(
        "MISTRAL_API_KEY", "https://api.mistral.ai/v1", server="mistral"
    ),
    "gemini": Provider(
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        server="gemini",
    ),
    "hosted_vllm": VLLM,
    "vllm": VLLM,
    "ollama": OLLAMA,
    "ollama_chat": OLLAMA,
    "deepseek": Provider("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
    "together_ai": Provider("TOGETHERAI_API_KEY", "https://api.together.xyz/v1"),
    "fireworks_ai": Provider(
        "FIREWORKS_AI_API_KEY", "https://api.fireworks.ai/inference/v1"
    ),
    "xai": Provider("XAI_API_KEY", "https://api.x.ai/v1"),
    "perplexity": Provider("PERPLEXITYAI_API_KEY", "https://api.perplexity.ai"),
    "deepinfra": Provider("DEEPINFRA_API_KEY", "https://api.deepinfra.com/v1/openai"),
    "cerebras": Provider("CEREBRAS_API_KEY", "https://api.cerebras.ai/v1"),
    "nvidia_nim": Provider("NVIDIA_NIM_API_KEY", "https://integrate.api.nvidia.com/v1"),
    **dict.fromkeys(
        ("litellm_proxy", "lm_studio", "xinference", "openai_like", "custom_openai"),
        ANY,
    ),
}
# Names that LiteLLM knows without a provider before them.
KNOWN_NAMES = (
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gpt-|chatgpt-|o\d|text-embedding-(ada-002|3-)"), "openai"),
)
# The first generation of Claude that decides itself how much it thinks.
ADAPTIVE_SINCE = (4, 6)
UNASKED_SINCE = (5, 0)


def split(model: str, provider: str = "") -> tuple[str, str]:
    """Return the provider of a model and its name there; an empty provider is unknown."""
    if provider:
        return provider, model.removeprefix(f"{provider}/")
    prefix, slash, name = model.partition("/")
    if slash:
        return prefix, name
    known = (each for pattern, each in KNOWN_NAMES if pattern.match(model))
    return next(known, ""), model


def thinking_of(model: str) -> str:
    """Return how a model of Anthropic's thinks, by the version in its name."""
    match = re.search(r"claude-(?:[a-z]+-)?(\d)(?:[.-](\d))?(?!\d)", model)
    if match is None:
        return "adaptive"
    version = (int(match[1]), int(match[2] or 0))
    if version >= UNASKED_SINCE:
        return "unasked"
    return "adaptive" if version >= ADAPTIVE_SINCE else "budget"
