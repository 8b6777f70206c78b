"""What the methods of document 000 do (5.2). Where it leaves the form to a server:

* a `toolId` is the server's name, a slash and the tool's name, as in the example of 4.1.3; the former may be missing,
  and underscores and capitals of the latter don't count: `filesystem/readFile` is `read_file`. Where several servers
  are one, it may name the one of them that has the tool;
* what a tool gives is its structured content, or else its text, or else the array of its content; where data stands
  beside more than text it is both, under the names of the specification. What it could not do is an error;
* a `resourceId` is a URI or a template of them. `query` has the template's variables; what it has besides becomes the
  query of the URI. What is no text becomes text as in JSON, and null is left out;
* what a resource gives is its text, or else the array of its contents.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ...errors import DeclarationError, InvalidParams, ToolError, UnknownTool
from ...protocol.types.base import Params
from ...protocol.types.resources import ReadResourceParams
from ...protocol.types.tools import CallToolParams
from ...protocol.uri_template import UriTemplate, with_query
from ...protocol.wire.jsonrpc import texts_of
from ...server.dispatch.context import Context
from ...server.features import Handler
from ...server.run import Run
from . import ask, list_all, read_params


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
    server, listed = _name_of(running), await list_all(running, context, "tools/list", "tools")
    return {"value": [{"toolId": f"{server}/{one['name']}", **one} for one in listed]}


async def list_resources(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/listResources`: all resources, as many as one call may list, and all templates, as one array."""
    fixed = await list_all(running, context, "resources/list", "resources")
    templates = await list_all(running, context, "resources/templates/list", "resourceTemplates")
    schemas = {one.uri: one.function.schema for one in running.features.resources.all() if one.is_template}
    told = [{"resourceId": one["uri"], **one, "querySchema": _NO_QUERY} for one in fixed]
    for one in templates:
        uri = one["uriTemplate"]
        told.append({"resourceId": uri, **one, "querySchema": schemas.get(uri) or _schema_of(uri)})
    return {"value": told}


async def execute_tool(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """`mcp/tool/execute`. Raises InvalidParams, ToolError, and what the tool raises."""
    given = read_params(context, _ExecuteParams)
    name = await _tool_name(running, context, given.tool_id)
    try:
        result = await ask(running, context, "tools/call", CallToolParams(name=name, arguments=given.inputs))
    except UnknownTool:
        if _is_own(running, given.tool_id):
            raise
        own = _name_of(running)
        raise InvalidParams(f"this server is {own!r}: its tools are {own}/NAME") from None
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
    if "{" in uri and (template := await _template(running, context, uri)) is not None:
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


async def _tool_name(running: Run[Any], context: Context[Any], tool_id: str) -> str:
    """The name of the tool that is meant, or of none."""
    server, _, name = tool_id.rpartition("/")
    if name in running.features.tools and _is_own(running, tool_id):
        return name
    names = [one["name"] for one in await list_all(running, context, "tools/list", "tools")]
    if not _is_own(running, tool_id):
        # Where several servers are one, each tool is understood by this name as well, however it is listed.
        before = f"{server}__"
        names = [one if one.startswith(before) else f"{before}{one}" for one in names]
        name = f"{before}{name}"
    return name if name in names else next((one for one in names if _plain(one) == _plain(name)), name)


def _is_own(running: Run[Any], tool_id: str) -> bool:
    """Whether it names no other server than this one."""
    server = tool_id.rpartition("/")[0]
    return not server or _plain(server) == _plain(_name_of(running))


async def _template(running: Run[Any], context: Context[Any], uri: str) -> UriTemplate | None:
    """The template that is written so; None where the server has none of them."""
    declared = running.features.resources.template(uri)
    if declared is not None:
        return declared
    listed = await list_all(running, context, "resources/templates/list", "resourceTemplates")
    return _compiled(uri) if any(one["uriTemplate"] == uri for one in listed) else None


def _compiled(uri: str) -> UriTemplate | None:
    try:
        return UriTemplate(uri)
    except DeclarationError:  # a server of others may list anything
        return None


def _schema_of(uri: str) -> dict[str, Any]:
    """The schema of the variables of a template that is declared elsewhere: all are text."""
    template = _compiled(uri)
    names = () if template is None else template.names
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def _name_of(running: Run[Any]) -> str:
    """What clients know the server as."""
    name: str = running.identity.server_info["name"]
    return name


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_NO_QUERY = {"type": "object", "properties": {}}
