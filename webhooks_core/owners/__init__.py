"""What owners of webhooks and operators ask and do. REST, pages, MCP, admin and commands call it.

| question or act | module |
|---|---|
| which endpoint fails, since when, why, what now | `state`, `remedies` |
| deliveries of an owner; one with its payload and all of its attempts | `deliveries`, `details` |
| what happened to a delivery, in words | `wording` |
| send again: one, or all that failed or was missed | `resending` |
| rotate or show a secret, enable, disable | `repairs` |
"""
