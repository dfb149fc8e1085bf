"""What owners of webhooks and operators ask and do. REST, pages, MCP, admin and commands call it.

| question or act | module |
|---|---|
| which endpoint fails, since when, why, what now | `state`, `remedies` |
| deliveries of an owner; one with all of its attempts | `deliveries`, `details` |
| what happened to a delivery, in words | `wording` |
| what was sent, as pages show it | `payloads` |
| send again: one, or all that failed or was missed | `resending` |
| rotate a secret, enable, send a test | `repairs` |
| attempts of the last day | `charts` |
"""
