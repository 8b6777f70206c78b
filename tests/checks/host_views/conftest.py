"""Prints at the end of a run how many bytes of each result the model of a host received."""

from typing import Any

from tests.records import recorded

RECEIVED = "received by a model"
"""The property of a test: a host, a tool, the bytes of its largest page, the number of its pages, and all bytes."""


def print_tables(terminalreporter: Any) -> None:
    """Prints a line for each host and tool."""
    terminalreporter.section("what models receive")
    for host, tool, largest, count, total in dict.fromkeys(map(tuple, recorded(terminalreporter, RECEIVED))):
        terminalreporter.write_line(
            f"{host:12} {tool:26} {total:8,} bytes in {count:2} pages of at most {largest:6,}"
        )
