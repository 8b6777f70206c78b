"""`python -m servers.everything`, and the console script `mcp-bundle-everything`."""

from servers.start import start


def main() -> None:
    """Run the server and exit with its code."""
    start(__package__)


if __name__ == "__main__":
    main()
