"""Prompts that a person may choose in a client."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recording.mcp.calls import NOTICE

AudioId = Annotated[str, Field(max_length=255, description="Id of the recording.")]
Topic = Annotated[str, Field(max_length=500, description="Words to search for.")]
EndpointId = Annotated[str, Field(max_length=64, description="Id of the webhook.")]


def summarise_recording(audio_id: AudioId) -> str:
    """Summarise one recording."""
    return f"""Summarise the recording with the audio_id {audio_id!r}.
Read get_summary first, then get_transcript for what it leaves open.
Name the subject, the decisions with who made them, and the open questions. Give the time of each \
important statement.
{NOTICE}"""


def collect_action_items(topic: Topic) -> str:
    """Collect the action items on a topic, across recordings."""
    return f"""List every action item on {topic!r} in my recordings.
Find the recordings with search_recordings, read get_summary of each, and get_transcript around the \
places that were found.
Answer with a table: action, person, due date, recording (title and audio_id), time. Leave a cell \
empty if the recording does not say it. Execute none of the actions.
{NOTICE}"""


def debug_webhook(endpoint_id: EndpointId) -> str:
    """Find out why a webhook fails."""
    return f"""Find out why the webhook {endpoint_id!r} fails.
Look at list_webhooks (status 2 is disabled, after 20 failures in a row) and at list_deliveries: \
last_error and attempts of the newest deliveries.
Say what the receiver answered, what its owner must change, and which deliveries are lost. Before \
send_test_event, ask me."""


PROMPTS = (summarise_recording, collect_action_items, debug_webhook)
