"""`python -m servers.prompts [DIR...]`, and the console script `mcp-bundle-prompts`.

Where the first argument is lint, render, test or export, that is done instead of serving.
"""

import gc
import sys

# Until `run` sets it up: what is loaded stays, so to look through it for garbage is a tenth of the start for nothing.
gc.disable()

from shared.program.run import run  # noqa: E402

from . import command_line  # noqa: E402
from .server import app  # noqa: E402


def main() -> None:
    """Runs the server, or what the first argument says; exits with its code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in command_line.WORDS:
        gc.enable()
        sys.exit(command_line.main(arguments))
    sys.exit(run(app, epilog=command_line.HELP))


if __name__ == "__main__":
    main()
