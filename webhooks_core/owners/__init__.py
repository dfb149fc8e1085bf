"""What owners of webhooks and operators ask and do; API, pages, admin and commands call it.

| question or act | module |
|---|---|
| which endpoint fails, since when, why | `endpoint_state`, `remedies` (what to do about it) |
| deliveries and events, searched | `delivery_search`, `event_search`; one delivery: `delivery_details` |
| pages of lists, and the ids of a range of time | `cursors`, `id_ranges` |
| why an event did or did not arrive | `why` |
| send again: one, many, what is missing | `replays`, `replay_jobs`; retry now and cancel: `replays` |
| who changed what | `changes` |
| who is told of a failure | `notifications` (what happened), `alerts` (mails and events) |
| figures over time | `charts` |
| an owner by a name that people know | `names` |
"""
