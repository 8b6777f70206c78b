"""Quotes names for SQL statements."""


def quote(name: str) -> str:
    """Return the name in double quotes, so that any name is valid in a statement."""
    return '"' + name.replace('"', '""') + '"'


def unquote(part: str) -> str:
    """Return a part of a name in a statement without its quotes, if it has any."""
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
