"""Counts of the tool calls that this process answered."""

from __future__ import annotations

from prometheus_client import Counter

# Not in prometheus_client's own registry: /metrics has one of its own.
tool_calls = Counter(
    "signpost_mcp_tool_calls",
    "Tool calls answered by this process.",
    ["tool", "outcome"],
    registry=None,
)
tool_calls.labels("unknown", "refused")  # there from the start, at zero
challenges = Counter(
    "signpost_mcp_event_challenges",
    "Challenges to callbacks of MCP Events by this process.",
    ["outcome"],
    registry=None,
)
challenges.labels("ok")
