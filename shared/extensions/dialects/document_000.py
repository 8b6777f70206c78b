"""The handlers for the methods of document 000 (section 5.2; see shared/protocol/wire/dialects/README.md). Decisions
that the document leaves to a server:

* A `toolId` is the name of the server, a slash and the name of the tool, as in the example in section 4.1.3. The name
  of the server may be left out. Underscores and case in the name of the tool are ignored: `filesystem/readFile` is
  `read_file`. A gateway also accepts the name of the server behind it that has the tool.
* The result of a tool is its structured content, or else its text, or else the array of its content blocks. If it has
  both structured content and other content than text, it is an object with both, as in the specification. A failed
  call is an error.
* A `resourceId` is a URI or a URI template. `query` contains the variables of the template; further values become the
  query of the URI. Values that are not strings become JSON, and null is dropped.
* The result of a resource is its text, or else the array of its contents.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ...errors import DeclarationError, InvalidParams, ToolError, UnknownTool
from ...protocol.types.base import Params
from ...protocol.types.resources import ReadResourceParams
from ...protocol.types.tools import CallToolParams
from ...protocol.uri_template import UriTemplate, add_query
from ...protocol.wire.jsonrpc import texts_of
from ...server.dispatch.context import Context
from ...server.features import Handler
from ...server.run import Run
from . import call_method, list_all, read_params

_NO_QUERY = {"type": "object", "properties": {}}


class _ExecuteParams(Params):
    """The params of `mcp/tool/execute`."""

    tool_id: str
    inputs: dict[str, Any]


class _ReadParams(Params):
    """The params of `mcp/resource/read`."""

    resource_id: str
    query: dict[str, Any] = Field(default_factory=dict)


async def list_tools(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """Handle `mcp/listTools`: return all tools that are offered, as one array."""
    server, tools = _name_of(run), await list_all(run, context, "tools/list", "tools")
    return {"value": [{"toolId": f"{server}/{tool['name']}", **tool} for tool in tools]}


async def list_resources(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """Handle `mcp/listResources`: return the resources and the templates, as one array."""
    fixed = await list_all(run, context, "resources/list", "resources")
    templates = await list_all(run, context, "resources/templates/list", "resourceTemplates")
    schemas = {
        resource.uri: resource.function.schema for resource in run.features.resources.all() if resource.is_template
    }
    entries = [{"resourceId": resource["uri"], **resource, "querySchema": _NO_QUERY} for resource in fixed]
    for resource in templates:
        uri = resource["uriTemplate"]
        schema = schemas.get(uri)
        if schema is None:
            # The template belongs to another server, so the types of its variables are unknown.
            template = _compile(uri)
            names = () if template is None else template.names
            schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        entries.append({"resourceId": uri, **resource, "querySchema": schema})
    return {"value": entries}


async def execute_tool(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """Handle `mcp/tool/execute`. Raises InvalidParams, ToolError, and the exceptions of the tool."""
    arguments = read_params(context, _ExecuteParams)
    name = await _find_tool_name(run, context, arguments.tool_id)
    try:
        result = await call_method(run, context, "tools/call", CallToolParams(name=name, arguments=arguments.inputs))
    except UnknownTool:
        if _is_for_this_server(run, arguments.tool_id):
            raise
        server_name = _name_of(run)
        raise InvalidParams(f"this server is {server_name!r}; call its tools as {server_name}/NAME") from None
    content = result["content"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts))
    if "structuredContent" not in result:
        return {"value": texts[0] if len(texts) == len(content) == 1 else content}
    data = result["structuredContent"]
    return {"value": data if len(texts) == len(content) else {"content": content, "structuredContent": data}}


async def read_resource(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
    """Handle `mcp/resource/read`. Raises InvalidParams, ResourceNotFound, and the exceptions of the resource's
    function."""
    arguments = read_params(context, _ReadParams)
    uri, values = arguments.resource_id, texts_of(arguments.query)
    if "{" in uri:
        template = run.features.resources.template(uri)
        if template is None:
            templates = await list_all(run, context, "resources/templates/list", "resourceTemplates")
            template = _compile(uri) if any(entry["uriTemplate"] == uri for entry in templates) else None
        if template is not None:
            uri = template.expand(values)
            values = {name: value for name, value in values.items() if name not in template.names}
    request = ReadResourceParams(uri=add_query(uri, values))
    result = await call_method(run, context, "resources/read", request)
    contents = result["contents"]
    return {"value": contents[0]["text"] if len(contents) == 1 and "text" in contents[0] else contents}


HANDLERS: Mapping[str, Handler] = {
    "listTools": list_tools,
    "listResources": list_resources,
    "tool/execute": execute_tool,
    "resource/read": read_resource,
}


async def _find_tool_name(run: Run[Any], context: Context[Any], tool_id: str) -> str:
    """Return the name of the tool with that id; if there is none, the name in the id."""
    server, _, name = tool_id.rpartition("/")
    if name in run.features.tools and _is_for_this_server(run, tool_id):
        return name
    names = [tool["name"] for tool in await list_all(run, context, "tools/list", "tools")]
    if not _is_for_this_server(run, tool_id):
        # A gateway accepts `<server>__<tool>` for each tool, even if it lists the tool under another name.
        prefix = f"{server}__"
        names = [listed_name if listed_name.startswith(prefix) else f"{prefix}{listed_name}" for listed_name in names]
        name = f"{prefix}{name}"
    if name in names:
        return name
    return next((listed_name for listed_name in names if _normalize(listed_name) == _normalize(name)), name)


def _is_for_this_server(run: Run[Any], tool_id: str) -> bool:
    """Return True if `tool_id` contains the name of this server, or no server."""
    server = tool_id.rpartition("/")[0]
    return not server or _normalize(server) == _normalize(_name_of(run))


def _compile(uri: str) -> UriTemplate | None:
    try:
        return UriTemplate(uri)
    except DeclarationError:  # it comes from another server, and may be anything
        return None


def _name_of(run: Run[Any]) -> str:
    """Return the name of the server that clients see."""
    name: str = run.identity.server_info["name"]
    return name


def _normalize(name: str) -> str:
    return name.replace("_", "").lower()
