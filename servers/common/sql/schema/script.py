"""A schema as the statements that create it."""

from collections.abc import Sequence

from servers.common.sql.texts import fence


def join_statements(statements: Sequence[str], max_bytes: int) -> str:
    """Join the statements, each with its semicolon, in at most `max_bytes` bytes. Omitted ones are counted."""
    shown: list[str] = []
    for statement in statements:
        max_bytes -= len(statement.encode()) + len("\n\n")
        if max_bytes < 0:
            shown.append(f"-- {len(statements) - len(shown)} more statements did not fit")
            break
        shown.append(statement)
    # The data marks are written as comments, so that the text can be run.
    text, _, end = fence(["\n\n".join(shown)]).rpartition("\n")
    return f"-- {text}\n-- {end}\n"
