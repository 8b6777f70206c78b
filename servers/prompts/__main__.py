"""`python -m servers.prompts [DIR...]`, and the console script `mcp-bundle-prompts`.

If the first argument is lint, render, test, export or update, that command runs instead of the server.
"""

import sys

from servers.start import start

HELP = "lint, render, test, export and update are separate commands; see lint --help."

COMMANDS = frozenset(["export", "lint", "render", "test", "update"])
"""First arguments that are commands. To serve a folder with such a name, write ./lint."""


def main() -> None:
    """Run the server, or the command in the first argument, and exit with its code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        from .cli.parser import run

        sys.exit(run(arguments))
    start(__package__, epilog=HELP)


if __name__ == "__main__":
    main()
