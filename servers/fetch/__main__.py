"""`python -m servers.fetch`, and the console script `mcp-bundle-fetch`."""

from servers.start import start


def main() -> None:
    """Run the server and exit with its code."""
    start(__package__)


if __name__ == "__main__":
    main()
