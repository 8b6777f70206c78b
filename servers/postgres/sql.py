"""Parts of SQL."""


def quote(name: str) -> str:
    """Quote any name for use in a statement."""
    return '"' + name.replace('"', '""') + '"'
