"""`python -m servers dev FILE.py`: a server in one file, while its author writes it.

A process serves the file, with the workbench, to this machine alone. It is started again when a Python file in the
folder changes, always at the same port, so a page that is open goes on.
"""

import os
import sys
import webbrowser
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from watchfiles import PythonFilter, run_process

from servers.gateway.serve.choice import Choice, Chosen
from servers.gateway.serve.running import run_all
from shared import Server
from shared.program.line_parser import LineParser
from shared.program.messages import exit_with_error, needs_extra
from shared.program.process import Options, missing_extra
from shared.program.run import own_prefix
from shared.program.settings.options import read_options

from ..loop_watch import watch_loop
from ..program_name import program_name
from ..workbench.front import Workbench


def main(argv: Sequence[str]) -> int:
    """Serves until a signal ends it; the exit code."""
    program = f"{program_name()} dev"
    what = "Serve FILE.py with the workbench, and start it again when a Python file in its folder changes."
    parser = LineParser(program, "%(prog)s [OPTION ...] FILE.py", what)
    parser.add_argument("file", metavar="FILE.py", type=Path, help="it has a Server, as `app`")
    parser.add_argument("--port", type=int, default=8000, help="port to bind (default: 8000)")
    parser.add_argument("--no-browser", action="store_true", help="only print the URL")
    given = parser.parse_args(argv)
    file = given.file.absolute()
    if not file.is_file():
        exit_with_error(program, f"there is no file {file}")
    if missing_extra():
        exit_with_error(program, needs_extra("http"))
    words = (program, file, given.port, not given.no_browser)
    # Editors write a file in several steps, all of which are over in a moment.
    run_process(file.parent, target=serve, args=words, watch_filter=PythonFilter(), debounce=200)
    return 0


def serve(program: str, file: Path, port: int, browse: bool) -> None:
    """Serves the file in this process until a signal ends it. Raises what the file raises."""
    try:
        app = load_server(file)
        words = {"transport": "http", "host": "127.0.0.1", "port": str(port), "workers": "1"}
        options = read_options(Options, words, os.environ, "MCP")
        settings = read_options(app.settings_model, {}, os.environ, own_prefix(app))
    except ValueError as error:
        exit_with_error(program, str(error))

    def started(url: str) -> None:
        watch_loop(file.parent)
        print(f"the workbench is at {url}; Ctrl+C ends it", file=sys.stderr, flush=True)  # noqa: T201 - for people
        if browse and os.environ.get("WATCHFILES_CHANGES") == "[]":  # no change has started it again
            Thread(target=webbrowser.open, args=[url], daemon=True).start()

    choice = Choice([Chosen(file.stem, app, settings, None)])
    sys.exit(run_all(program, options, choice, None, Workbench().answer, started))


def load_server(file: Path) -> Server[Any]:
    """The server that `file` declares. Raises ValueError where there is none or several, and what the file raises."""
    sys.path.insert(0, str(file.parent))
    module = import_module(file.stem)
    if Path(str(module.__file__)) != file:
        raise ValueError(f"Python has a module called {file.stem!r} already: give the file another name")
    # One that has two names is one.
    servers = {id(value): value for value in vars(module).values() if isinstance(value, Server)}
    if len(servers) != 1:
        raise ValueError(f"{file.name} has {len(servers)} servers: declare one, as in `app = Server(...)`")
    return next(iter(servers.values()))
