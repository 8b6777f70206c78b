"""`python -m servers.prompts [DIR...]`, and the console script `mcp-bundle-prompts`.

Where the first argument is lint, render, test, export or update, that is done instead of serving.
"""

import sys

from servers.start import start

HELP = "With lint, render, test, export or update as the first word it does that instead: lint --help says more."

COMMANDS = frozenset(["export", "lint", "render", "test", "update"])
"""What the first argument is then. A folder that is called so is served as ./lint."""


def main() -> None:
    """Runs the server, or what the first argument says; exits with its code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        from servers.prompts.cli.parser import run

        sys.exit(run(arguments))
    start(__package__, epilog=HELP)


if __name__ == "__main__":
    main()
