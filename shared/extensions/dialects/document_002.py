"""The handlers for the methods of document 002 that have no equivalent in the specification (see
shared/protocol/wire/dialects/README.md). Decisions that the document leaves to a server:

* in addition to `version`, the answer to `initialize` contains the fields of the specification: `protocolVersion`,
  `serverInfo`, `capabilities` and `instructions`;
* the answer also contains the tools and prompts, as `tools` and `prompts`, because no method lists them;
* `lastModified` of a resource is taken from the `_meta` of its contents, where files have one, or else from its
  declaration.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import ResourceNotFound
from ...protocol.types.base import Params
from ...protocol.types.prompts import Prompt
from ...protocol.types.resources import ReadResourceParams
from ...protocol.wire.dialects.forms_002 import pick_names
from ...server.dispatch.context import Context
from ...server.features import Handler
from ...server.run import Run
from . import call_method, list_all, read_params

_Object = dict[str, Any]


class _InitializeParams(Params):
    """The params of `initialize`, after `wire/dialects` has chosen a version."""

    version: str


async def initialize(run: Run[Any], context: Context[Any], params: Params) -> _Object:
    """Handle `initialize`: return the server's description, and its tools and prompts."""
    version = read_params(context, _InitializeParams).version
    identity = run.identity
    description = {
        "version": version,
        "protocolVersion": version,
        "serverInfo": identity.server_info,
        "capabilities": {name: {} for name in ("resources", "tools", "prompts") if identity.has((name,))},
        "tools": [
            {**pick_names(tool), "arguments": tool["inputSchema"]}
            for tool in await list_all(run, context, "tools/list", "tools")
        ],
        "prompts": await _list_prompts(run, context),
    }
    instructions = {} if identity.instructions is None else {"instructions": identity.instructions}
    return {"value": {**description, **instructions}}


async def read_resource(run: Run[Any], context: Context[Any], params: Params) -> _Object:
    """Handle `read_resource`. Raises InvalidParams, ResourceNotFound, and the exceptions of the resource's
    function."""
    request = read_params(context, ReadResourceParams)
    result = await call_method(run, context, "resources/read", request)
    times = [content.get("_meta", {}).get("lastModified") for content in result["contents"]]
    last_modified = max((time for time in times if isinstance(time, str)), default=None)
    if last_modified is None:
        with suppress(ResourceNotFound):  # the resource belongs to another server
            annotations = run.features.resources.match(request.uri)[0].entry.annotations
            last_modified = None if annotations is None else annotations.last_modified
    meta = {} if last_modified is None else {"lastModified": last_modified}
    return {"value": {"contents": result["contents"], "meta": meta}}


HANDLERS: Mapping[str, Handler] = {"initialize": initialize, "read_resource": read_resource}


async def _list_prompts(run: Run[Any], context: Context[Any]) -> list[_Object]:
    prompts = run.features.prompts
    # A declared function has the types of its arguments, which `prompts/list` does not show.
    schemas = {prompt.name: prompt.function.schema for prompt in prompts.all()}
    if prompts.source is not None:
        prompts_of_source = await prompts.source.page(context, "", context.budget.entries)
        schemas = {prompt.name: _schema_of(prompt) for prompt in prompts_of_source} | schemas
    listed = await list_all(run, context, "prompts/list", "prompts")
    return [
        {**pick_names(prompt), "arguments": schemas.get(prompt["name"]) or _schema_of(Prompt.model_validate(prompt))}
        for prompt in listed
    ]


def _schema_of(prompt: Prompt) -> _Object:
    """Return the schema of the arguments of a prompt from a list, which are all strings."""
    properties: _Object = {}
    for argument in prompt.arguments or ():
        schema = {"type": "string", "description": argument.description, "default": argument.default}
        properties[argument.name] = {key: value for key, value in schema.items() if value is not None}
    required = [argument.name for argument in prompt.arguments or () if argument.required]
    return {"type": "object", "properties": properties, "required": required}
