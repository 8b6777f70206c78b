"""Writes a schema as the statements that create it."""

from collections.abc import Sequence

from shared.text import format_count

from ..texts import fence


def join_statements(statements: Sequence[str], max_bytes: int) -> str:
    """Join as many of the statements as fit into `max_bytes` bytes. Each must end with a semicolon. If some are
    omitted, a comment says how many."""
    fitting: list[str] = []
    for statement in statements:
        max_bytes -= len(statement.encode()) + len("\n\n")
        if max_bytes < 0:
            fitting.append(f"-- {format_count(len(statements) - len(fitting), 'more statement')} did not fit")
            break
        fitting.append(statement)
    # Write the marks around the data as comments, so that the text can be run.
    text, _, end = fence(["\n\n".join(fitting)]).rpartition("\n")
    return f"-- {text}\n-- {end}\n"
