"""The command-line parser for the prompts server."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path

from shared.program.line_parser import LineParser

from ..remote.address import Address, Package, is_address, is_package, parse_address
from ..templates.host_commands import HOSTS
from .commands import UsageError, export, lint, render, test
from .host_commands import export_commands
from .remote import open_remote, update

_DIR = "folder or .zip file of prompts, or the URL of a library in git"


def run(arguments: Sequence[str]) -> int:
    """Run a command; return the exit code."""
    try:
        options = _build_parser().parse_args(arguments)
    except SystemExit as system_exit:
        # argparse has already printed a message. The exit code is 2, or 0 after --help.
        return int(system_exit.code or 0)
    try:
        code = _run(options)
        sys.stdout.flush()
    except UsageError as error:
        sys.stderr.write(f"{options.command}: {error}\n")
        return 2
    except BrokenPipeError:  # the reader has closed the pipe, as head does
        # Python flushes again at exit, and would report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run(options: Namespace) -> int:
    match options.command:
        case "lint":
            return lint(options.dirs, as_json=options.json)
        case "test":
            return test(options.dirs, update=options.update)
        case "render":
            return render(options.dir, options.name, options.values)
        case "update":
            return update(options.addresses)
    names, to = None if options.all else options.names, options.to
    if options.host is not None:
        return export_commands(options.dir, names, to, HOSTS[options.host], force=options.force)
    return export(options.dir, names, to, force=options.force)


def _build_parser() -> ArgumentParser:
    program_name = Path(sys.argv[0]).stem
    parser = LineParser(
        prog=program_name
        if program_name == "mcp-bundle-prompts"
        else f"python -m {__package__.removesuffix('.cli')}",
        description="Exit codes: 0 success, 1 problems found or command failed, 2 incorrect usage.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    linting = commands.add_parser("lint", help="report problems in prompts, as path:line: problem")
    linting.add_argument("dirs", type=_parse_library, nargs="+", metavar="DIR", help=_DIR)
    linting.add_argument("--json", action="store_true", help="print JSON, including the size of each prompt")

    rendering = commands.add_parser("render", help="print the messages of a prompt")
    rendering.add_argument("dir", type=_parse_library, metavar="DIR", help=_DIR)
    rendering.add_argument("name", metavar="NAME", help="of the prompt")
    rendering.add_argument("values", nargs="*", metavar="KEY=VALUE", help="an argument of the prompt")

    testing = commands.add_parser("test", help="compare prompts with their expected output (NAME.golden.yaml)")
    testing.add_argument("dirs", type=_parse_library, nargs="+", metavar="DIR", help=_DIR)
    testing.add_argument("--update", action="store_true", help="update the examples that differ")

    exporting = commands.add_parser("export", help="write prompts as skills, or as commands for a host")
    exporting.add_argument("dir", type=_parse_library, metavar="DIR", help=_DIR)
    exporting.add_argument("names", nargs="*", metavar="NAME", help="of a prompt")
    exporting.add_argument("--all", action="store_true", help="all prompts in the folder")
    exporting.add_argument("--to", type=Path, required=True, metavar="DIR", help="directory to write to")
    hosts = ", ".join(HOSTS)
    exporting.add_argument(
        "--as",
        dest="host",
        choices=HOSTS,
        metavar="HOST",
        help=f"host to write commands for ({hosts}); by default, skills are written",
    )
    exporting.add_argument("--force", action="store_true", help="replace existing files that differ")

    updating = commands.add_parser("update", help="fetch libraries from git, and print their commits")
    updating.add_argument("addresses", type=_parse_address, nargs="+", metavar="URL", help="URL of a library in git")
    return parser


def _parse_address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _parse_library(text: str) -> Path:
    package = Package(Path(text)) if text and is_package(Path(text)) else None
    if package is not None or is_address(text):
        try:
            return open_remote(package or _parse_address(text))
        except UsageError as error:
            raise ArgumentTypeError(str(error)) from None
    if not text or not Path(text).is_dir():
        raise ArgumentTypeError(f"{text!r} is not a directory")
    return Path(text)
