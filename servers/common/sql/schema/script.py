"""A schema as the statements that create it."""

from collections.abc import Sequence

from servers.common.sql.texts import fence


def join_statements(statements: Sequence[str], most: int) -> str:
    """Join the statements, each with its semicolon, in at most `most` bytes. Omitted ones are counted."""
    shown: list[str] = []
    for statement in statements:
        most -= len(statement.encode()) + len("\n\n")
        if most < 0:
            shown.append(f"-- {len(statements) - len(shown)} more statements did not fit")
            break
        shown.append(statement)
    # The data marks are written as comments, so that the text can be run.
    text, _, end = fence(["\n\n".join(shown)]).rpartition("\n")
    return f"-- {text}\n-- {end}\n"
