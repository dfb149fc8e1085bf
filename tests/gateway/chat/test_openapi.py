"""Chat's streams and failures keep to the OpenAPI document."""

import pytest

from tests.documented import assert_response_documented
from tests.gateway.chat.mock_upstream import STREAM, sends


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v2/chat/completions", "/v1/messages"]
)
def test_every_event_of_a_stream_that_breaks_is_documented(path, gateway, upstream):
    gateway.declare()
    upstream.script = sends(STREAM[0], b"data: nonsense\n\n")
    response = gateway.post(path=path, stream=True)
    assert b"error" in response.content.split(b"data: ")[-1]
    assert_response_documented(response)
