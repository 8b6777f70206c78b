"""`python -m servers.sqlite DATABASE...`, and the console script `mcp-bundle-sqlite`."""

import sys

from servers.start import start


def main() -> None:
    """Runs the server; exits with its code."""
    try:
        start("servers.sqlite")
    except ModuleNotFoundError as error:
        # Its connections are made of those of aiosqlite, so it can't be loaded without.
        if error.name != "aiosqlite":
            raise
    from shared.kit.extras import needs_extra  # noqa: PLC0415 (only where it is missing)
    from shared.program.options import called  # noqa: PLC0415

    sys.stderr.write(f"{called()}: {needs_extra('sqlite')}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
