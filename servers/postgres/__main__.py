"""The entry point `python -m servers.postgres URL...`, and the console script `mcp-bundle-postgres`."""

from servers.start import start


def main() -> None:
    """Run the server, and exit with its code."""
    try:
        start(__package__)
    except ModuleNotFoundError as error:
        # The settings can't be read without psycopg, since libpq parses the URLs.
        if error.name not in ("psycopg", "psycopg_binary"):
            raise
    from shared.program.messages import exit_with_error, missing_extra_message, program_name

    exit_with_error(program_name(), missing_extra_message("postgres"))


if __name__ == "__main__":
    main()
