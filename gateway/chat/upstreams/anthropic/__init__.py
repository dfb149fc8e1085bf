"""Chat requests in the terms of Anthropic's Messages API."""
