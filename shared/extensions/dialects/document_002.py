"""What the methods of document 002 do that are no methods of the specification. Where it leaves the form to a server:

* beside `version`, the answer to `initialize` has the names of the specification: `protocolVersion`, `serverInfo`,
  `capabilities`, `instructions`;
* tools and prompts are defined there, under `tools` and `prompts`: there is no method that lists them. Of a source of
  prompts it has as many as one call may list;
* `lastModified` of a resource is what its declaration says, or else the list of resources, as far as one call may
  list them: contents don't tell.
"""

from collections.abc import Mapping
from typing import Any

from ...protocol.types.base import Params
from ...protocol.types.prompts import Prompt, PromptArgument
from ...protocol.types.resources import ReadResourceParams
from ...server.context import Context
from ...server.features import Handler
from ...server.running import Running
from . import read_params

__all__ = ["HANDLERS", "initialize", "read_resource"]

_Object = dict[str, Any]


class _InitializeParams(Params):
    """The params of `initialize`, once a version was chosen."""

    version: str


async def initialize(running: Running[Any], context: Context[Any], params: Params) -> _Object:
    """`initialize`: what the server is, and all that a client may call."""
    version = read_params(context, _InitializeParams).version
    identity, features = running.identity, running.features
    told = {
        "version": version,
        "protocolVersion": version,
        "serverInfo": identity.server_info,
        "capabilities": {name: {} for name in ("resources", "tools", "prompts") if identity.has((name,))},
        "tools": [
            {"name": tool["name"], "description": tool["description"], "arguments": tool["inputSchema"]}
            for tool in features.tools.listed(running.settings)
        ],
        "prompts": await _prompts(running, context),
    }
    instructions = {} if identity.instructions is None else {"instructions": identity.instructions}
    return {"value": {**told, **instructions}}


async def read_resource(running: Running[Any], context: Context[Any], params: Params) -> _Object:
    """`read_resource`. Raises InvalidParams, ResourceNotFound, and what reads the resource raises."""
    wanted = read_params(context, ReadResourceParams)
    result = await running.handlers["resources/read"](running, context, wanted)
    moment = await _last_modified(running, context, wanted.uri)
    return {"value": {"contents": result["contents"], "meta": {} if moment is None else {"lastModified": moment}}}


HANDLERS: Mapping[str, Handler] = {"initialize": initialize, "read_resource": read_resource}


async def _last_modified(running: Running[Any], context: Context[Any], uri: str) -> str | None:
    resources = running.features.resources
    resource, _ = resources.match(uri)
    notes = resource.entry.annotations
    if notes is None and resources.listers:
        listed = await resources.page(context, 0, context.budget.entries)
        notes = next((one.annotations for one in listed if one.uri == uri), None)
    return None if notes is None else notes.last_modified


async def _prompts(running: Running[Any], context: Context[Any]) -> list[_Object]:
    prompts = running.features.prompts
    declared = [{**_named(one.listed), "arguments": one.function.schema} for one in prompts.all()]
    if prompts.source is None:
        return declared
    names = {prompt["name"] for prompt in declared}
    found = await prompts.source.page(context, "", context.budget.entries)
    return declared + [_defined(prompt) for prompt in found if prompt.name not in names]


def _named(prompt: _Object) -> _Object:
    return {name: prompt[name] for name in ("name", "description") if name in prompt}


def _defined(prompt: Prompt) -> _Object:
    """A prompt whose arguments have no types: all are text."""
    arguments = prompt.arguments or []
    schema = {
        "type": "object",
        "properties": {one.name: _text_schema(one) for one in arguments},
        "required": [one.name for one in arguments if one.required],
    }
    return {**_named(prompt.to_wire()), "arguments": schema}


def _text_schema(argument: PromptArgument) -> _Object:
    described = {} if argument.description is None else {"description": argument.description}
    return {"type": "string", **described}
