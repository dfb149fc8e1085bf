"""MCP Events (`io.modelcontextprotocol/events`): what an account's clients may watch."""
