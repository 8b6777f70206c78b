"""What the methods of document 000 do (5.2). Where it leaves the form to a server:

* a `toolId` is the server's name, a slash and the tool's name, as in the example of 4.1.3; the former may be missing,
  and underscores and capitals of the latter don't count: `filesystem/readFile` is `read_file`;
* what a tool gives is its structured content, or else its text, or else the array of its content; where data stands
  beside more than text it is both, under the names of the specification. What it could not do is an error;
* a `resourceId` is a URI or a template of them. `query` has the template's variables; what it has besides becomes the
  query of the URI. What is no text becomes text as in JSON, and null is left out;
* what a resource gives is its text, or else the array of its contents.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ...errors import InvalidParams, ToolError
from ...protocol.types.base import Params
from ...protocol.types.resources import ReadResourceParams
from ...protocol.types.tools import CallToolParams
from ...protocol.uri_template import with_query
from ...protocol.wire.jsonrpc import texts_of
from ...server.dispatch.context import Context
from ...server.features import Handler
from ...server.run import Run
from . import ask, read_params


class _ExecuteParams(Params):
    """The params of `mcp/tool/execute`."""

    tool_id: str
    inputs: dict[str, Any]


class _ReadParams(Params):
    """The params of `mcp/resource/read`."""

    resource_id: str
    query: dict[str, Any] = Field(default_factory=dict)


async def list_tools(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/listTools`: all tools on offer, as one array."""
    server = running.server.implementation.name
    listed = running.features.tools.listed(running.settings)
    return {"value": [{"toolId": f"{server}/{one['name']}", **one} for one in listed]}


async def list_resources(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/listResources`: all resources, as many as one call may list, and all templates, as one array."""
    await running.changes.want_resources()
    resources = running.features.resources
    found = await resources.page(context, 0, context.budget.entries)
    fixed = [{"resourceId": one.uri, **one.to_wire(), "querySchema": _NO_QUERY} for one in found]
    templates = [
        {"resourceId": one.uri, **one.entry.to_wire(), "querySchema": one.function.schema}
        for one in resources.all()
        if one.is_template
    ]
    return {"value": [*fixed, *templates]}


async def execute_tool(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/tool/execute`. Raises InvalidParams, ToolError, and what the tool raises."""
    given = read_params(context, _ExecuteParams)
    named = CallToolParams(name=_tool_name(running, given.tool_id), arguments=given.inputs)
    result = await ask(running, context, "tools/call", named)
    content = result["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts))
    if "structuredContent" not in result:
        return {"value": texts[0] if len(texts) == len(content) == 1 else content}
    data = result["structuredContent"]
    return {"value": data if len(texts) == len(content) else {"content": content, "structuredContent": data}}


async def read_resource(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/resource/read`. Raises InvalidParams, ResourceNotFound, and what reads the resource raises."""
    given = read_params(context, _ReadParams)
    uri, values = given.resource_id, texts_of(given.query)
    if (template := running.features.resources.template(uri)) is not None:
        uri = template.expand(values)
        values = {name: value for name, value in values.items() if name not in template.names}
    wanted = ReadResourceParams(uri=with_query(uri, values))
    result = await ask(running, context, "resources/read", wanted)
    contents = result["contents"]
    return {"value": contents[0]["text"] if len(contents) == 1 and "text" in contents[0] else contents}


HANDLERS: Mapping[str, Handler] = {
    "listTools": list_tools,
    "listResources": list_resources,
    "tool/execute": execute_tool,
    "resource/read": read_resource,
}


def _tool_name(running: Run[Any], tool_id: str) -> str:
    """The name of the tool that is meant, or of none. Raises InvalidParams where it is another server's."""
    server, _, name = tool_id.rpartition("/")
    own = running.server.implementation.name
    if server and _plain(server) != _plain(own):
        raise InvalidParams(f"this server is {own!r}: its tools are {own}/NAME")
    if name in running.features.tools:
        return name
    return next((tool.name for tool in running.features.tools.all() if _plain(tool.name) == _plain(name)), name)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_NO_QUERY = {"type": "object", "properties": {}}
