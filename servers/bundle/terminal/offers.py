"""Everything that a server offers: requests it, and prints it."""

import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from shared.client.client import Client
from shared.errors import MethodNotFound, PeerError
from shared.text import join_lines

from .display import flush_output, records_of
from .output import cell, console, table
from .parameters import Parameter, as_text, parameters_of

_HINTS = (("readOnlyHint", "reads only"), ("destructiveHint", "may destroy"), ("idempotentHint", "may be repeated"))

_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)
"""Matches the spaces with which a table fills the end of a line."""


class Offers(NamedTuple):
    """The description and the lists of a server, as received."""

    server: Mapping[str, Any]
    version: str
    """The version of the protocol."""
    capabilities: Mapping[str, Any]
    instructions: str | None
    tools: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    prompts: list[dict[str, Any]]


async def find_offers(client: Client) -> Offers:
    """Request all lists that the server has. Raises the same errors as a request."""
    server, raw = client.server, client.raw
    return Offers(
        dict(server.info),
        server.version,
        dict(server.capabilities),
        server.instructions,
        await _request_list(raw.list_tools) if server.can("tools") else [],
        await _request_list(raw.list_resources) if server.can("resources") else [],
        await _request_list(raw.list_resource_templates) if server.can("resources") else [],
        await _request_list(raw.list_prompts) if server.can("prompts") else [],
    )


async def _request_list(ask: Callable[[], Awaitable[list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Return the list that `ask` requests. If the server does not have the method, return an empty list: many servers
    with resources have no templates."""
    try:
        return records_of(await ask())
    except PeerError as error:
        if error.code != MethodNotFound.code:
            raise
        return []


def show_offers(offers: Offers) -> None:
    """Print the offers for people. Raises Misuse if the output can't be written."""
    out = console()
    with flush_output(sys.stdout):
        with out.capture() as shown:
            _print_offers(out, offers)
        sys.stdout.write(_END.sub(lambda end: end[0].replace(" ", ""), shown.get()))


def _print_offers(out: Console, offers: Offers) -> None:
    info = offers.server
    implementation = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    out.print(cell(join_lines(f"{implementation}, speaks MCP {offers.version}"), "bold"))
    for text in (info.get("description"), offers.instructions):
        _paragraph(out, text, 0)
    _heading(out, "Capabilities")
    capabilities: list[str] = []
    for name, value in offers.capabilities.items():
        parts = [key for key, setting in value.items() if setting is not False] if isinstance(value, dict) else []
        capabilities.append(f"{name} ({', '.join(parts)})" if parts else name)
    _paragraph(out, "; ".join(capabilities) or "none", 2)
    if offers.tools:
        _heading(out, "Tools")
    for tool in offers.tools:
        hints = tool.get("annotations")
        labels = [word for key, word in _HINTS if isinstance(hints, dict) and hints.get(key) is True]
        out.print(Text.assemble(cell(f"  {_name(tool)}", "bold"), cell(f"  ({', '.join(labels)})" if labels else "")))
        _paragraph(out, tool.get("description"), 4)
        _arguments(out, parameters_of(tool.get("inputSchema")).values())
    for heading, key, records in (
        ("Resources", "uri", offers.resources),
        ("Resource templates", "uriTemplate", offers.templates),
    ):
        if records:
            _heading(out, heading)
        for record in records:
            out.print(cell(f"  {_name(record, key)}"))
            kind = record.get("mimeType")
            described = record.get("description") or record.get("title") or record.get("name")
            _paragraph(out, " ".join(str(item) for item in (described, f"({kind})" if kind else "") if item), 4)
    if offers.prompts:
        _heading(out, "Prompts")
    for prompt in offers.prompts:
        out.print(cell(f"  {_name(prompt)}", "bold"))
        _paragraph(out, prompt.get("description") or prompt.get("title"), 4)
        parameters: list[Parameter] = []
        for item in records_of(prompt.get("arguments")):
            described, required = str(item.get("description") or ""), item.get("required") is True
            parameters.append(Parameter(_name(item), frozenset({"string"}), required=required, description=described))
        _arguments(out, parameters)


def _arguments(out: Console, parameters: Iterable[Parameter]) -> None:
    rows: list[tuple[str, str, str]] = []
    for parameter in parameters:
        notes = ["required"] if parameter.required else []
        if parameter.default is not None and parameter.default not in ("", [], {}):
            notes.append(f"default {as_text(parameter.default)}")
        described = " ".join(parameter.description.split())
        if notes:
            described = described.removesuffix(".")
        shown = "; ".join(filter(None, [described, *notes]))
        rows.append((join_lines(parameter.name), join_lines(parameter.kind), shown))
    if rows:
        out.print(Padding(table(("Argument", "Value", "What it is"), rows), (0, 0, 0, 4)), soft_wrap=False)


def _name(record: Mapping[str, Any], key: str = "name") -> str:
    """Return the name on one line, since a line break in it could forge another line of the output."""
    return join_lines(str(record.get(key)))


def _heading(out: Console, text: str) -> None:
    out.print(cell(f"\n{text}", "bold"))


def _paragraph(out: Console, text: object, indent: int) -> None:
    """Print text from the server, wrapped to the width of the terminal."""
    if isinstance(text, str) and text.strip():
        out.print(Padding(cell(text.strip()), (0, 0, 0, indent)), soft_wrap=False)
