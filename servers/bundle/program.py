"""The bundle's program: `python -m servers`, also installed as `mcp-server-bundle`, and its commands.

Nothing from `shared` is imported before `main` has called `make_modules_lazy` or `refuse_foreign`.
"""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from ..start import make_modules_lazy, refuse_foreign
from .program_name import program_name

COMMANDS = {
    "list": "list the bundle's servers",
    "info": "show the catalog entry of a server",
    "run": "start one server, or several joined into one",
    "config": "print the entry to paste into a client's configuration",
    "install": "add a server to a client's configuration",
    "uninstall": "remove a server from a client's configuration",
    "doctor": "find out why servers do not work, and how to fix them",
    "serve": "serve several servers in one process, on one port",
    "dev": "serve FILE.py with the workbench, and reload it after each change",
    "open": "open the workbench in the browser to see and use the servers",
    "login": "log in to a server at a URL, in the browser",
    "logout": "forget a login",
    "accounts": "list the servers that you are logged in to",
    "connect": "relay a server at a URL to a host that supports only stdio",
    "expose": "serve a stdio server over HTTP",
    "pin": "show changed tools of a third-party server, and accept them",
    "token": "create, list and revoke tokens",
    "export": "write bundles, plugins, and entries for the MCP registry and Docker",
    "call": "call a server's tool",
    "read": "read a server's resource",
    "watch": "show changes to resources as they happen",
    "prompt": "show a prompt with its arguments filled in",
    "inspect": "show what a server offers",
    "demo": "start the servers as a desktop host does, and call their tools",
}
"""The commands, each with a description. A command is the function `main` of the module with its name in `commands`,
which is imported when the command is run. It gets the arguments after the name, and returns the exit code."""

_MODULES = {
    "list": ("info", "list_servers"),
    "uninstall": ("install", "uninstall"),
    "logout": ("login", "logout"),
    "accounts": ("login", "accounts"),
    **{name: (f"client.{name}", "main") for name in ("call", "read", "watch", "prompt", "inspect")},
}
"""The module and the function of each command for which these have other names."""

_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The error codes for a full disk or an exceeded quota."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    refuse_foreign()
    if isinstance(sys.stdout, TextIOWrapper):
        # The encoding of a pipe may not support all characters of a path.
        sys.stdout.reconfigure(errors="backslashreplace")
    if "_ARGCOMPLETE" in os.environ:  # the shell requests completions
        make_modules_lazy()
        from .completion import complete

        complete(program_name(), list(COMMANDS))
    if words and words[0] in COMMANDS:
        code, write_error = 1, ""
        try:
            code = _run(words[0], words[1:])
        except* KeyboardInterrupt:
            code = 130
        except* BrokenPipeError:  # the reader has closed the pipe, as head does
            pass
        except* OSError as errors:
            full, others = errors.split(lambda error: isinstance(error, OSError) and error.errno in _DISK_FULL_ERRORS)
            if full is None or others is not None:
                raise
            first: BaseException = full
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            # Only writing the output has failed; that is reported below.
            code, write_error = 0, getattr(first, "strerror", None) or "it is full"
        finally:
            try:
                sys.stdout.flush()
            except OSError as error:
                # Replace stdout, because Python would try to flush it again at exit, and report another error.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                write_error = error.strerror or "it is closed"
        if write_error and code == 0:
            sys.stderr.write(f"{program_name()} {words[0]}: the output can't be written: {write_error}\n")
            code = 2
        return code
    return _show_commands(words)


def _show_commands(words: Sequence[str]) -> int:
    """Print the list of commands, or an error for an unknown command; return the exit code."""
    from argparse import RawDescriptionHelpFormatter

    from shared.program.line_parser import LineParser
    from shared.version import __version__

    listed = "\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items())
    parser = LineParser(
        prog=program_name(),
        usage="%(prog)s COMMAND [ARGUMENT ...]",
        description=f"The commands of the bundle. Each server is also a separate program.\n\n{listed}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mcp-server-bundle {__version__}")
    parser.add_argument(
        "command", metavar="COMMAND", nargs="?", choices=COMMANDS, help="command to run; see COMMAND --help"
    )
    if not words:
        parser.print_help(sys.stderr)
    else:
        parser.parse_args(words[:1])
    return 2


def _run(name: str, words: Sequence[str]) -> int:
    make_modules_lazy()
    try:
        module, function = _MODULES.get(name, (name, "main"))
        code: int = getattr(import_module(f".commands.{module}", __package__), function)(words)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("servers", "shared", "mcp_server_bundle"):
            raise
        if name == "doctor":
            # The doctor reports which libraries are missing.
            shown: int = import_module(".doctor.findings", __package__).report_libraries(words)
            return shown
        from shared.program.messages import exit_with_error, missing_extra_message

        extra = "all" if name == "demo" else "catalog"
        exit_with_error(f"{program_name()} {name}", f"{library} is not installed; {missing_extra_message(extra)}")
    return code
