"""`python -m servers list` and `info NAME`: prints the servers of a catalog, and all details of one."""

import textwrap
from collections.abc import Iterator, Sequence

from servers.catalog import Argument, Entry, load_catalog
from shared.program.messages import exit_with_error

from ..program_name import program_name
from ..terminal.command_parser import CommandParser
from ..terminal.output import cell, console, list_demands, print_json, table


def list_servers(argv: Sequence[str]) -> int:
    """Print all servers; return the exit code."""
    parser = CommandParser("list", "List the servers of the bundle's catalog, or of another one.")
    parser.add_catalog()
    parser.add_json()
    args = parser.parse_args(argv)
    try:
        catalog = load_catalog(args.catalog)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    if args.json:
        print_json(catalog.model_dump(mode="json", exclude_defaults=True))
        return 0
    rows = [(entry.name, entry.summary, "; ".join(list_demands(entry))) for entry in catalog.servers]
    console().print(table(("Name", "What it does", "What it requires"), rows), soft_wrap=False)
    return 0


def main(argv: Sequence[str]) -> int:
    """Print one server; return the exit code."""
    parser = CommandParser("info", "Show the catalog entry of a server.")
    parser.add_argument("name", metavar="NAME", help="server to show")
    parser.add_catalog()
    parser.add_json()
    args = parser.parse_args(argv)
    try:
        entry = load_catalog(args.catalog).entry(args.name)
    except ValueError as error:
        exit_with_error(parser.prog, str(error))
    if args.json:
        print_json(entry.model_dump(mode="json"))
    else:
        out = console()
        out.print(cell(f"{entry.title} {entry.version}", "bold"))
        out.print(cell(entry.description), soft_wrap=False)
        for heading, lines in _sections(entry, out.width - 2):
            out.print(cell(f"\n{heading}", "bold"))
            for line in lines:
                out.print(cell(f"  {line}"))
        if entry.arguments:
            out.print()
            headings = ("Argument", "Type", "Default", "What it does, and its variable")
            out.print(table(headings, map(_row, entry.arguments)), soft_wrap=False)
    return 0


def _sections(entry: Entry, width: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the heading and the lines of each section before the arguments. Commands, paths and URIs are not wrapped,
    so that they can be copied."""
    yield "Start over stdio", [_example(entry, [])]
    if "http" in entry.transports:
        advice = (
            "then connect to http://127.0.0.1:8000/mcp; to serve other machines, add --host and --token-file FILE"
        )
        command = _example(entry, ["--transport", "http", "--port", "8000"])
        yield "Start over HTTP", [command, *_wrap(advice, width)]
    yield (
        "Add to a client",
        [" ".join([f"{program_name()} config {entry.name}", *_required_words(entry), "--client CLIENT"])],
    )
    yield "Asks for", [line for demand in list_demands(entry) for line in _wrap(demand, width)]
    if entry.tools.read:
        yield "Tools", _wrap(", ".join(entry.tools.read), width)
    if entry.tools.write:
        yield f"Tools that write, with {entry.permissions.writing}", _wrap(", ".join(entry.tools.write), width)
    for scope, tools in entry.scopes.items():
        also = ", as resources and prompts do" if scope.endswith(":read") else ""
        title = f"Tools that need the scope {scope}{also}"
        yield title, _wrap(", ".join(tools), width)
    if entry.resources or entry.resource_templates:
        yield "Resources", [*entry.resources, *entry.resource_templates]
    if entry.prompts:
        yield "Prompts", _wrap(", ".join(entry.prompts), width)
    if entry.documentation:
        yield "Documentation", [entry.documentation]
    named = {"license": entry.license, "container image": entry.image, "extra of the package": entry.extra}
    named |= {"module": entry.module, "category": entry.category, "icon": entry.icon}
    yield "Besides", [f"{what} {value}" for what, value in named.items() if value]


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _example(entry: Entry, options: Sequence[str]) -> str:
    start = [entry.script] if entry.script else ["python", "-m", entry.module]
    return " ".join([*start, *options, *_required_words(entry)])


def _required_words(entry: Entry) -> list[str]:
    """Return the words of a command line for all required arguments, with placeholders as values."""
    unnamed = [argument.metavar or argument.name.upper() for argument in entry.arguments if argument.option is None]
    named = [argument for argument in entry.arguments if argument.option is not None and argument.required]
    return [part for argument in named for part in (str(argument.option), argument.metavar or "VALUE")] + unnamed


def _row(argument: Argument) -> tuple[str, str, str, str]:
    value = argument.metavar or ("" if argument.type == "boolean" else "VALUE")
    name = f"{argument.option or ''} {value}{' ...' if argument.repeated else ''}".strip()
    notes = [*(["required"] if argument.required else []), *(["a secret"] if argument.secret else [])]
    choices = [f"one of {', '.join(argument.choices)}"] if argument.choices else []
    text = "; ".join([argument.description, *choices, *notes])
    default = (
        argument.default
        if isinstance(argument.default, list)
        else []
        if argument.default in (None, False)
        else [argument.default]
    )
    return (
        name,
        argument.type,
        ", ".join(map(str, default)),
        f"{text}\n{argument.environment}" if argument.environment else text,
    )
