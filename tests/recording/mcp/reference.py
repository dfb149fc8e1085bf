"""A server with what the official conformance suite expects of a reference server.

It has our class, so that the suite tests our transport.
"""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from recording.mcp.server import RecordingServer

TEXT = TextContent(text="A text.")
IMAGE = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
SOUND = AudioContent(data="UklGRg==", mime_type="audio/wav")
DOCUMENT = EmbeddedResource(
    resource=TextResourceContents(
        uri="test://example", mime_type="text/plain", text="A resource."
    )
)
CONTENTS = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [SOUND],
    "test_embedded_resource": [DOCUMENT],
    "test_multiple_content_types": [TEXT, IMAGE, DOCUMENT],
}
# Words of JSON Schema that a tool may use and ours do not.
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object"}},
    "properties": {"address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"required": ["phone"]},
    "then": {"required": ["address"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Person(BaseModel):
    username: str
    email: str


def tool(name: str, result: Any) -> Tool:
    """Return a tool that always has the same result."""

    def call() -> Any:
        return result

    return Tool.from_function(call, name, description=name, structured_output=False)


schema_tool = tool("json_schema_2020_12_tool", TEXT)
schema_tool.parameters = SCHEMA
server = RecordingServer(
    "reference",
    version="1",
    subscriptions=False,
    tools=[schema_tool, *(tool(*each) for each in CONTENTS.items())],
)


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise ValueError


@server.tool()
def test_missing_capability() -> str:
    """Need what the client cannot do."""
    data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
    raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs sampling.", data)


@server.tool()
async def test_tool_with_progress(context: Context[Any, Any]) -> str:
    """Report progress."""
    await context.report_progress(50, 100)
    return "Done."


@server.tool()
async def test_sampling(prompt: str, context: Context[Any, Any]) -> str:
    """Ask the model of the client."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    return str(await context.session.create_message([message], max_tokens=100))


@server.tool()
async def test_elicitation(message: str, context: Context[Any, Any]) -> str:
    """Ask the person."""
    return str(await context.elicit(message, Person))


@server.tool()
def test_custom_headers(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Return what is also a header."""
    return region


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "A text."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return b"\x89PNG"


@server.resource("test://template/{id}/data")
def template(id: str) -> str:  # noqa: A002
    return id


@server.prompt()
def test_simple_prompt() -> str:
    """Say something."""
    return "A text."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Repeat the arguments."""
    return f"{arg1} {arg2}"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
    """Embed a resource."""
    contents = DOCUMENT.resource.model_copy(update={"uri": resourceUri})
    return [UserMessage(EmbeddedResource(resource=contents))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """Show an image."""
    return [UserMessage(IMAGE)]


@server.completion()
async def complete(_ref: Any, _argument: Any, _context: Any) -> Completion:
    return Completion(values=[])
