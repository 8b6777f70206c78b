"""`python -m servers.prompts [DIR...]`, and the console script `mcp-bundle-prompts`.

Where the first argument is lint, render, test or export, that is done instead of serving.
"""

import sys

from servers.prompts import command_line
from servers.start import start


def main() -> None:
    """Runs the server, or what the first argument says; exits with its code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in command_line.WORDS:
        sys.exit(command_line.main(arguments))
    start("servers.prompts", epilog=command_line.HELP)


if __name__ == "__main__":
    main()
