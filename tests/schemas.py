"""Messages that a server or a client sent, checked against the official JSON schema of their protocol version.

The schema files are no part of this project, and no package has those of all versions. They are read from
`$MCP_SPEC_DIR/<date>/schema.json`; the default is the folder `shared/spec` beside the checkout. Where it is absent,
tests marked `requires_spec` are skipped; under `CI=true` they fail instead, so that a missing folder can't pass for a
clean run. `FETCH` brings them.

The schemas are open: an unknown key is valid everywhere. A strict check therefore also walks the message and
reports each key that the schema doesn't name at a place where it names some.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest

Schema = dict[str, Any]
Side = Literal["Server", "Client"]

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SPEC_DIR = Path(os.environ.get("MCP_SPEC_DIR") or Path(__file__).resolve().parents[2].joinpath("shared", "spec"))

FETCH = (
    "git clone --depth 1 https://github.com/modelcontextprotocol/modelcontextprotocol /tmp/mcp; "
    "export MCP_SPEC_DIR=/tmp/mcp/schema"
)
"""The command that brings the schemas, and says where they are."""

# A strict check skips contents that belong to the author, the host or an extension.
FREE = frozenset({"_meta", "structuredContent", "inputSchema", "outputSchema", "data", "arguments"}) | frozenset(
    {"experimental", "extensions"}
)
# `tasks/result` answers with the result of some other request, so its schema can't name the keys.
OPEN_DEFINITIONS = frozenset({"GetTaskPayloadResult"})
# Schemas before 2026-07-28 leave room for more: "this is not a closed set: any server can define its own, additional
# capabilities". A client declares in its first message its capabilities in the newest version that it may speak.
ADDED: dict[str, Schema] = {
    "ServerCapabilities": {"extensions": {"type": "object"}},
    "ClientCapabilities": {"extensions": {"type": "object"}, "elicitation": {"type": "object"}},
    # MCP Apps starts with 2024-11-05, although these objects got `_meta` later (SEP-1865, Capability Negotiation).
    "Tool": {"_meta": {"type": "object"}},
    "TextResourceContents": {"_meta": {"type": "object"}},
    # SEP-2663 adds a filter.
    "SubscriptionFilter": {"taskIds": {"type": "array", "items": {"type": "string"}}},
}
# Methods of official extensions, which the core schema of 2026-07-28 does not know, and of one that a test declares.
EXTENSION = re.compile(r"(notifications/)?(tasks|skills|stars)(/|$)|resources/directory/")


def available() -> bool:
    """Returns whether the schema of every version is available."""
    return all((SPEC_DIR / version / "schema.json").is_file() for version in VERSIONS)


def wanted() -> bool:
    """Returns whether messages are checked: the schemas are available, or required."""
    return available() or os.environ.get("CI") == "true"


requires_spec = pytest.mark.skipif(not wanted(), reason=f"needs the official schemas of the protocol: {FETCH}")


def check(
    message: Any,
    version: str,
    *,
    method: str | Mapping[Any, str] | None = None,
    strict: bool = True,
    sender: Side = "Server",
) -> None:
    """Raise AssertionError unless a server of `version` may send `message`, or a client if that is the `sender`.

    `method` is the method of the request that a response answers; for a batch, a mapping from request id to
    method. Without it a result is only known to be some result, and its keys are not checked.
    """
    if isinstance(message, list):
        assert version == "2025-03-26", f"{version} has no batches:\n{_pretty(message)}"
        assert message, "a batch can't be empty"
        for part in message:
            check(part, version, method=method, strict=strict, sender=sender)
        return
    if isinstance(method, Mapping):
        method = method.get(message.get("id"))
    what, schema, free = _expect(message, version, method, sender)
    if "error" in message and "id" not in message:
        # Versions before 2025-11-25 demand an id in every error, though none can be read from broken JSON.
        message = {"id": 0, **message}
    problems = [f"- {path}: {text}" for path, text in _invalid(message, schema)]
    if strict and not problems:
        problems = [f"+ {path}: not in this schema" for path in _unknown(message, schema, schema, free)]
    if problems:
        lines = "\n".join(f"  {line}" for line in problems)
        raise AssertionError(f"{what} does not fit {version}:\n{lines}\n{_pretty(message)}")


# Which schema a message has to meet


def _expect(
    message: Mapping[str, Any], version: str, method: str | None, sender: Side
) -> tuple[str, Schema, frozenset[str]]:
    """Returns a description of the message, its schema, and the keys that a strict check skips."""
    if "method" in message:
        return _expect_call(message["method"], version, "Request" if "id" in message else "Notification", sender)
    if "error" in message:
        envelope = _present(version, "JSONRPCErrorResponse", "JSONRPCError")
        error = message["error"]
        code = error.get("code") if isinstance(error, dict) else None
        names = [envelope, *_errors(version).get(code, ())]
        return f"error {code} for {method}", _composed(version, tuple(names)), FREE
    envelope = _present(version, "JSONRPCResultResponse", "JSONRPCResponse")
    name = _result_definition(message.get("result"), version, method, "Client" if sender == "Server" else "Server")
    free = FREE | {"result"} if name == "Result" else FREE
    return f"result of {method}", _composed(version, (envelope,), result=name), free


def _expect_call(method: str, version: str, kind: str, sender: Side) -> tuple[str, Schema, frozenset[str]]:
    name = members(version, f"{sender}{kind}").get(method)
    what = f"{kind.lower()} {method}"
    if name is None:
        extension = EXTENSION.match(method) and version == VERSIONS[-1] and kind == "Notification"
        assert extension, f"{what}: a {sender.lower()} of {version} may not send it"
        return what, _composed(version, ("JSONRPCNotification",)), FREE | {"params"}
    return what, _composed(version, (f"JSONRPC{kind}", name)), FREE


def _result_definition(result: Any, version: str, method: str | None, asker: Side) -> str:
    kind = result.get("resultType", "complete") if isinstance(result, dict) else "complete"
    if version == VERSIONS[-1] and kind == "input_required":
        return "InputRequiredResult"
    if method is None or (version == VERSIONS[-1] and (kind != "complete" or EXTENSION.match(method))):
        return "Result"
    request = members(version, f"{asker}Request").get(method)
    assert request is not None, f"{method}: {version} has no such request, so it can't have a result"
    known = _definitions(version)
    if "CreateTaskResult" in known and isinstance(result, dict) and "task" in result:
        return "CreateTaskResult"
    name = request.removesuffix("Request") + "Result"
    return name if name in known else "EmptyResult"


@cache
def _document(version: str) -> Schema:
    path = SPEC_DIR / version / "schema.json"
    assert path.is_file(), f"{path} is missing: {FETCH}"
    document: Schema = json.loads(path.read_text(encoding="utf-8"))
    return document


def _definitions(version: str) -> dict[str, Schema]:
    document = _document(version)
    found: dict[str, Schema] = document.get("$defs") or document["definitions"]
    return found


def _reference(version: str, name: str) -> Schema:
    key = "$defs" if "$defs" in _document(version) else "definitions"
    return {"$ref": f"#/{key}/{name}"}


def _present(version: str, *names: str) -> str:
    return next(name for name in names if name in _definitions(version))


@cache
def members(version: str, union: str) -> dict[str, str]:
    """Returns the definitions in a union such as `ServerNotification`, by their method."""
    known = _definitions(version)
    if "method" in known.get(union, {}).get("properties", {}):  # a union of one definition is that definition
        names = [union]
    else:
        names = [member["$ref"].rpartition("/")[2] for member in known.get(union, {}).get("anyOf", ())]
    return {known[name]["properties"]["method"]["const"]: name for name in names}


@cache
def _errors(version: str) -> dict[Any, list[str]]:
    """Returns the definitions of error responses of one code, e.g. -32022."""
    found: dict[Any, list[str]] = {}
    for name, schema in _definitions(version).items():
        for part in schema.get("properties", {}).get("error", {}).get("allOf", ()):
            if "const" in part.get("properties", {}).get("code", {}):
                found.setdefault(part["properties"]["code"]["const"], []).append(name)
    return found


@cache
def _composed(version: str, names: tuple[str, ...], result: str | None = None) -> Schema:
    """Returns a schema that requires all of `names`, and for a response the definition of its `result`."""
    parts = [_reference(version, name) for name in names]
    if result is not None:
        parts.append({"properties": {"result": _reference(version, result)}})
    return {**_document(version), "allOf": parts}


# Validity


_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("byte", raises=binascii.Error)
def _is_base64(value: object) -> bool:
    return not isinstance(value, str) or base64.b64decode(value, validate=True) is not None


@_formats.checks("uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S*$", value) is not None


_validators: dict[int, Any] = {}


def _validator(schema: Schema) -> Any:
    # The composed schemas live as long as the process, so their identity is a safe key.
    if id(schema) not in _validators:
        kind = jsonschema.validators.validator_for(schema)
        _validators[id(schema)] = kind(schema, format_checker=_formats)
    return _validators[id(schema)]


def _invalid(message: Any, schema: Schema) -> Iterator[tuple[str, str]]:
    seen = set()
    for error in _validator(schema).iter_errors(message):
        deepest = jsonschema.exceptions.best_match([error])
        found = (_path(deepest.absolute_path), deepest.message)
        if found not in seen:
            seen.add(found)
            yield found


# Strictness


def _unknown(value: Any, schema: Schema, root: Schema, free: frozenset[str], path: str = "$") -> list[str]:
    """Yields the paths of all keys in `value` that `schema` doesn't name, in the branch that fits best."""
    if not isinstance(value, (dict, list)):
        return []
    found = [_unknown_in(value, parts, root, free, path) for parts in _branches(value, schema, root)]
    return min(found, key=len, default=[])


def _unknown_in(value: Any, parts: list[Schema], root: Schema, free: frozenset[str], path: str) -> list[str]:
    if isinstance(value, list):
        items = {"allOf": [part["items"] for part in parts if isinstance(part.get("items"), dict)]}
        return [key for at, item in enumerate(value) for key in _unknown(item, items, root, free, f"{path}[{at}]")]
    named: dict[str, list[Schema]] = {}
    for part in parts:
        for key, schema in part.get("properties", {}).items():
            named.setdefault(key, []).append(schema)
    other = [part["additionalProperties"] for part in parts if isinstance(part.get("additionalProperties"), dict)]
    closed = bool(named) and not any(part.get("open") for part in parts)
    found: list[str] = []
    for key, item in value.items():
        if closed and key not in named:
            found.append(f"{path}.{key}")
        elif key not in free:
            found += _unknown(item, {"allOf": named.get(key, other)}, root, free, f"{path}.{key}")
    return found


def _branches(value: Any, schema: Schema, root: Schema) -> list[list[Schema]]:
    """Returns all ways to read `schema` for this value; each is a list of plain schemas that apply together."""
    ways = [[schema]]
    if "$ref" in schema:
        *_, key, name = schema["$ref"].split("/")
        target = root[key][name]
        if name in OPEN_DEFINITIONS:
            target = {**target, "open": True}
        if name in ADDED:
            target = {**target, "properties": {**ADDED[name], **target["properties"]}}
        ways = _joined(ways, _branches(value, target, root))
    for part in schema.get("allOf", ()):
        ways = _joined(ways, _branches(value, part, root))
    for choice in ("anyOf", "oneOf"):
        fitting = [part for part in schema.get(choice, ()) if _validator(root).evolve(schema=part).is_valid(value)]
        if fitting:
            ways = _joined(ways, [way for part in fitting for way in _branches(value, part, root)])
    return ways


def _joined(left: list[list[Schema]], right: list[list[Schema]]) -> list[list[Schema]]:
    return [one + other for one in left for other in right]


def _path(parts: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _pretty(message: Any) -> str:
    return json.dumps(message, indent=2, ensure_ascii=False)
