"""The entry point `python -m servers.sqlite DATABASE...`, and the console script `mcp-bundle-sqlite`."""

from servers.start import start


def main() -> None:
    """Run the server, and exit with its code."""
    try:
        start(__package__)
    except ModuleNotFoundError as error:
        # The server can't be imported without aiosqlite, which provides its connections.
        if error.name != "aiosqlite":
            raise
    from shared.program.messages import exit_with_error, missing_extra_message, program_name

    exit_with_error(program_name(), missing_extra_message("sqlite"))


if __name__ == "__main__":
    main()
