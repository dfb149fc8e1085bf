"""MCP Events (`io.modelcontextprotocol/events`): an account's clients get events by webhook."""
