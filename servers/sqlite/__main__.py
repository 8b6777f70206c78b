"""`python -m servers.sqlite DATABASE...`, and the console script `mcp-bundle-sqlite`."""

from servers.start import start


def main() -> None:
    """Runs the server; exits with its code."""
    try:
        start(__package__)
    except ModuleNotFoundError as error:
        # Its connections are made of those of aiosqlite, so it can't be loaded without.
        if error.name != "aiosqlite":
            raise
    from shared.program.messages import (
        exit_with_error,
        needs_extra,
        program_name,
    )

    exit_with_error(program_name(), needs_extra("sqlite"))


if __name__ == "__main__":
    main()
