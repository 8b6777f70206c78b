"""`python -m servers dev FILE.py [-- ARGUMENT ...]`: serve a server in one file while its author writes it.

A process serves the file, with the workbench, to this machine only. It is restarted when the file changes, or a
Python file in the same folder or one of its subfolders. The port stays the same, so that an open page keeps working.
"""

import logging
import os
import sys
import webbrowser
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from watchfiles import PythonFilter, run_process

from servers.gateway.serve.choice import Choice, ChosenServer
from servers.gateway.serve.over_http import run_all
from shared import Server
from shared.program.line_parser import LineParser
from shared.program.messages import exit_with_error, missing_extra_message
from shared.program.process import lacks_http_extra
from shared.program.run import read_arguments

from ..loop_watch import watch_loop
from ..program_name import program_name
from ..workbench.front import Workbench

_EXITING_OPTIONS = {"-h", "--help", "--help-all", "--version"}
"""Options with which a server prints something and exits."""


def main(argv: Sequence[str]) -> int:
    """Serve until a signal ends it; return the exit code."""
    program = f"{program_name()} dev"
    description = (
        "Serve FILE.py with the workbench, and restart the server when that file or a Python file next to it changes."
    )
    parser = LineParser(
        program, "%(prog)s [OPTION ...] FILE.py [-- ARGUMENT ...]", description,
        epilog="Everything after `--` is passed to the server. It is always served over HTTP, to this machine only.",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE.py", type=Path, help="file with a Server called `app`")
    parser.add_argument("--port", type=int, help="port to bind (default: 8000)")
    parser.add_argument("--no-browser", action="store_true", help="only print the URL")
    end = argv.index("--") if "--" in argv else len(argv)
    args = parser.parse_args(argv[:end])
    file = args.file.absolute()
    if not file.is_file():
        exit_with_error(program, f"there is no file {file}")
    if file.suffix != ".py" or "." in file.stem:
        exit_with_error(program, f"Python can't import {file.name}: name it NAME.py, without another dot")
    if lacks_http_extra():
        exit_with_error(program, missing_extra_message("http"))
    fixed_options = ["--transport=http", "--host=127.0.0.1", "--workers=1"]
    if args.port is not None:
        fixed_options.append(f"--port={args.port}")
    arguments = add_options(argv[end + 1 :], fixed_options)
    if not _EXITING_OPTIONS.isdisjoint(arguments):
        serve(program, file, arguments, browse=False)
    # What watchfiles logs about its shutdown does not help the author.
    logging.getLogger("watchfiles").setLevel(logging.ERROR)
    # `debounce`: editors save a file in several steps.
    run_process(
        *watched_folders(file),
        target=serve,
        args=(program, file, arguments, not args.no_browser),
        watch_filter=PythonFilter(),
        debounce=200,
        recursive=False,
    )
    return 0


def watched_folders(file: Path) -> set[Path]:
    """Return the folder of `file`, and its subfolders that contain Python files. Deeper folders are not watched,
    since the folder may be a home directory with 100,000 of them."""
    return {file.parent, *(module.parent for module in file.parent.glob("*/*.py"))}


def add_options(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return `arguments` with `options` added, which override those in `arguments`."""
    # After a `--`, they would not count as options.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], *options, *arguments[end:]]


def serve(program: str, file: Path, arguments: Sequence[str], browse: bool) -> None:
    """Serve the server in `file` with these arguments until a signal ends this process. With `browse`, open the
    browser at the first start. Raises the exceptions of importing the file."""
    try:
        module = load_module(file)
    except SystemExit:
        guard = 'if __name__ == "__main__":'
        exit_with_error(program, f"{file.name} ends the program when it is imported: put `run(app)` under `{guard}`")
    try:
        app = find_server(module, file)
        options, settings, exposed = read_arguments(app, file.name, arguments, os.environ)
    except ValueError as error:
        exit_with_error(program, str(error))

    def announce(url: str) -> None:
        watch_loop(file.parent)
        print(f"the workbench is at {url}; press Ctrl+C to stop", file=sys.stderr, flush=True)  # noqa: T201 - for people
        if browse and os.environ.get("WATCHFILES_CHANGES") == "[]":  # this is the first start, not one after a change
            Thread(target=webbrowser.open, args=[url], daemon=True).start()

    choice = Choice([ChosenServer(file.stem, app, settings, None, rules=options.rules)])
    sys.exit(run_all(program, options, choice, exposed, Workbench().answer, announce))


def load_module(file: Path) -> ModuleType:
    """Import `file` and return its module; if a module of the same name is already imported, that is returned
    instead. Raises the exceptions of importing the file."""
    sys.path.insert(0, str(file.parent))
    return import_module(file.stem)


def find_server(module: ModuleType, file: Path) -> Server[Any]:
    """Return the only server that `module` declares. Raises ValueError if it declares none or several, or was not
    imported from `file`."""
    if getattr(module, "__file__", None) != str(file):
        raise ValueError(f"Python already has a module named {file.stem!r}: give the file another name")
    # A server with two names counts once.
    servers = {id(value): value for value in vars(module).values() if isinstance(value, Server)}
    if len(servers) != 1:
        raise ValueError(f"{file.name} has {len(servers)} servers: declare one, as in `app = Server(...)`")
    return next(iter(servers.values()))
