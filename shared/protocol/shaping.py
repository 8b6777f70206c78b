"""Converts results, errors, and requests to the client, into the form of the peer's protocol version.

Handlers build results of the newest version. For a peer of this version, little more than the envelope is added:
`resultType`, the server's name in `_meta`, and caching hints. For older versions, fields that they don't know are
removed. A field is identified by its name and the kind of its object, never by its name alone, because a tool may
have an argument that is called `title` too.

`_SINCE` lists the fields that were added after 2024-11-05, and `_ONLY` those that exist in one version only. `_PARTS`
lists the fields of an object that contain objects of another kind. Content that a version does not support is
replaced with text, so that no loss is silent.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import (
    CallTimeout,
    InternalError,
    InvalidArguments,
    InvalidParams,
    McpError,
    MissingCapability,
    ResourceNotFound,
    RpcError,
    ToolError,
)
from .identity import Peer
from .methods import Method
from .types.base import SERVER_INFO
from .versions import V2025_03_26, V2025_06_18, V2025_11_25, Version
from .wire.jsonrpc import Prepared, json_of

_LIST_ENTRY = {"title": V2025_06_18, "icons": V2025_11_25, "_meta": V2025_06_18}

_SINCE: dict[str, dict[str, Version]] = {
    "Tool": {**_LIST_ENTRY, "annotations": V2025_03_26, "outputSchema": V2025_06_18},
    "Resource": _LIST_ENTRY,
    "Prompt": _LIST_ENTRY,
    "PromptArgument": {"title": V2025_06_18},
    "Annotations": {"lastModified": V2025_06_18},
    "Implementation": {
        "title": V2025_06_18,
        "description": V2025_11_25,
        "websiteUrl": V2025_11_25,
        "icons": V2025_11_25,
    },
    "ServerCapabilities": {"completions": V2025_03_26},
    "CallToolResult": {"structuredContent": V2025_06_18},
    "ContentBlock": {"_meta": V2025_06_18, "title": V2025_06_18, "icons": V2025_11_25},
    "ResourceContents": {"_meta": V2025_06_18},
    "SamplingParams": {"tools": V2025_11_25, "toolChoice": V2025_11_25},
    "ElicitParams": {"mode": V2025_11_25},
    "Progress": {"message": V2025_03_26},
}

_ONLY: dict[str, dict[str, Version]] = {"Tool": {"execution": V2025_11_25}}

_PARTS: dict[str, dict[str, str]] = {
    "initialize": {"serverInfo": "Implementation", "capabilities": "ServerCapabilities"},
    "tools/list": {"tools": "Tool"},
    "tools/call": {"content": "ContentBlock"},
    "resources/list": {"resources": "Resource"},
    "resources/templates/list": {"resourceTemplates": "Resource"},
    "resources/read": {"contents": "ResourceContents"},
    "prompts/list": {"prompts": "Prompt"},
    "prompts/get": {"messages": "PromptMessage"},
    "PromptMessage": {"content": "ContentBlock"},
    "SamplingParams": {"messages": "PromptMessage"},
    "Prompt": {"arguments": "PromptArgument"},
    "Resource": {"annotations": "Annotations"},
    "ContentBlock": {"annotations": "Annotations", "resource": "ResourceContents"},
}

_RESULT_TYPES = {"tools/call": "CallToolResult"}
_OBJECT: dict[str, Any] = {}
"""Stands for missing structured content, since before 2026-07-28 only an object is allowed there."""
_APP_FIELDS = ("ui", "ui/resourceUri")
"""The fields of `_meta` that peers of every version receive. They belong to MCP Apps, which supports versions from
2024-11-05 on; the host Goose uses it with 2025-03-26."""
_ENVELOPE = ("resultType", "ttlMs", "cacheScope")
_BLOCKS_SINCE = {"audio": V2025_03_26, "resource_link": V2025_06_18}


class CachedResult(dict[str, Any]):
    """A result that one server sends unchanged to many peers. It is shaped and encoded once per version."""

    __slots__ = ("_size", "_variants", "shaped")

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result)
        self.shaped: dict[Version, Prepared] = {}
        self._variants: dict[str, CachedResult] = {}
        self._size: int | None = None

    @property
    def size(self) -> int:
        """Size in bytes of the result in the newest version, without the envelope."""
        if self._size is None:
            self._size = len(json_of(self))
        return self._size

    def get_variant(self, name: str, make: Callable[[], dict[str, Any]]) -> "CachedResult":
        """Return the variant of this result with that name, for peers that need another one. `make` creates it at its
        first use."""
        cached = self._variants.get(name)
        if cached is None:
            cached = self._variants[name] = CachedResult(make())
        return cached


def shape(method: Method, result: dict[str, Any], version: Version, server_info: dict[str, Any]) -> dict[str, Any]:
    """Return `result` of `method` in `version`'s form. The argument is not changed."""
    if isinstance(result, CachedResult):
        cached = result.shaped.get(version)
        if cached is None:
            cached = result.shaped[version] = Prepared(shape(method, dict(result), version, server_info))
        return cached
    if version.stateless:
        if method.cacheable:
            result = _convert(method.name, result, version)
        shaped = {"resultType": "complete", **result}
        meta = result.get("_meta")
        shaped["_meta"] = {**(meta if isinstance(meta, dict) else {}), SERVER_INFO: server_info}
        if method.cacheable and shaped["resultType"] == "complete":
            # This version requires both fields. By default, nothing is cached.
            shaped.setdefault("ttlMs", 0)
            shaped.setdefault("cacheScope", "private")
        return shaped
    if method.cacheable or _has_changes(method.name, version):
        result = {
            name: item for name, item in _convert(method.name, result, version).items() if name not in _ENVELOPE
        }
    # 2025-06-18 and 2025-11-25 allow objects only. The client still has the data as text, in `content`.
    if not isinstance(result.get("structuredContent", _OBJECT), dict):
        result = {name: item for name, item in result.items() if name != "structuredContent"}
    return result


def is_well_formed(name: str, result: dict[str, Any]) -> bool:
    """Return True if another server's result of the method `name` has objects and lists where `shape` expects them.
    The contents of the lists are left to the peer to check."""
    return all(isinstance(result.get(part, []), dict | list) for part in _PARTS.get(name, ()))


def shape_request(method: str, params: dict[str, Any], version: Version) -> dict[str, Any]:
    """Return the params of a request to the client, or of a progress notification, in `version`'s form."""
    match method:
        case "elicitation/create" if version.stateless:
            # The id serves to report that the user has finished; here the answer returns with the call instead.
            return {name: item for name, item in params.items() if name != "elicitationId"}
        case "elicitation/create":
            params = _convert("ElicitParams", params, version)
            if version.order > V2025_06_18.order or "requestedSchema" not in params:
                return params
            # 2025-06-18 has defaults only for booleans, and the titles of choices in `enumNames`.
            schema = params["requestedSchema"]
            fields = {name: _convert_form_field(field) for name, field in schema.get("properties", {}).items()}
            return {**params, "requestedSchema": {**schema, "properties": fields}}
        case "sampling/createMessage":
            return _convert("SamplingParams", params, version)
        case "notifications/progress":
            return _convert("Progress", params, version)
        case _:
            return params


def to_rpc_error(error: McpError, version: Version) -> RpcError:
    """Return `error` as a JSON-RPC error of `version`. Other exceptions become internal errors without details."""
    match error:
        case RpcError():
            return error
        case InvalidArguments():
            return InvalidParams(str(error))
        case CallTimeout() | ToolError():
            return InternalError(str(error))
        case ResourceNotFound():
            # 2026-07-28 replaced -32002 with -32602.
            return RpcError(error.message, code=version.resource_not_found, data={"uri": error.uri})
        case MissingCapability():
            data = {"requiredCapabilities": error.required}
            return RpcError(str(error), code=version.missing_capability, data=data)
        case _:
            return InternalError("internal error")


def is_result(error: McpError, method: Method, version: Version) -> bool:
    """Return True if `error` is sent as a result with `isError`, for the model to read: the failure of a tool and,
    since SEP-1303, arguments that violate its schema."""
    if method.name != "tools/call":
        return False
    if isinstance(error, InvalidArguments):
        return version.argument_errors_are_results
    return isinstance(error, ToolError | CallTimeout)


def outcome_for_peer(outcome: dict[str, Any] | McpError, method: Method, peer: Peer) -> dict[str, Any] | RpcError:
    """Return the outcome of a call as a result, which still has to be shaped, or as the JSON-RPC error for `peer`."""
    if isinstance(outcome, dict):
        return outcome
    if is_result(outcome, method, peer.version):
        return {"content": [{"type": "text", "text": str(outcome)}], "isError": True}
    return to_rpc_error(outcome, peer.version)


@cache
def _unknown_fields(kind: str, version: Version) -> frozenset[str]:
    since, only = _SINCE.get(_RESULT_TYPES.get(kind, kind), {}), _ONLY.get(kind, {})
    later = {name for name, first in since.items() if version.order < first.order}
    return frozenset(later | {name for name, only_version in only.items() if only_version is not version})


@cache
def _has_changes(kind: str, version: Version) -> bool:
    """Return True if objects of this `kind`, or objects inside them, may have to change for `version`."""
    if _unknown_fields(kind, version) or (kind == "Tool" and not version.stateless):
        return True
    if kind == "ContentBlock" and any(version.order < first.order for first in _BLOCKS_SINCE.values()):
        return True
    return any(_has_changes(part, version) for part in _PARTS.get(kind, {}).values())


def _convert(kind: str, value: dict[str, Any], version: Version) -> dict[str, Any]:
    if not _has_changes(kind, version):
        return value
    first = _BLOCKS_SINCE.get(str(value.get("type"))) if kind == "ContentBlock" else None
    if first is not None and version.order < first.order:
        text = f"[{value.get('mimeType')} left out: this protocol version has no audio]"
        if value["type"] == "resource_link":
            text = f"{value.get('name')}: {value.get('uri')}"
        value = {"type": "text", "text": text}
    unknown, parts = _unknown_fields(kind, version), _PARTS.get(kind, {})
    fitted = {name: item for name, item in value.items() if name not in unknown}
    if "_meta" in unknown and isinstance(meta := value.get("_meta"), dict):
        app_fields = {name: meta[name] for name in _APP_FIELDS if name in meta}
        fitted |= {"_meta": app_fields} if app_fields else {}
    for name, part in parts.items():
        inner: Any = fitted.get(name)
        if isinstance(inner, list):
            fitted[name] = [_convert(part, item, version) if isinstance(item, dict) else item for item in inner]
        elif name in fitted:
            fitted[name] = _convert(part, inner, version)
    schema = fitted.get("outputSchema")
    if not version.stateless and (not isinstance(schema, dict) or schema.get("type") != "object"):
        fitted.pop("outputSchema", None)
    return fitted


def _convert_form_field(field: dict[str, Any]) -> dict[str, Any]:
    fitted = dict(field)
    if field.get("type") != "boolean":
        fitted.pop("default", None)
    choices = fitted.get("oneOf")
    if isinstance(choices, list) and all(isinstance(choice, dict) and "const" in choice for choice in choices):
        del fitted["oneOf"]
        fitted["enum"] = [choice["const"] for choice in choices]
        fitted["enumNames"] = [choice.get("title", choice["const"]) for choice in choices]
    return fitted
