"""Parts of SQL."""


def quote(name: str) -> str:
    """The name as it stands in a statement, whatever it is."""
    return '"' + name.replace('"', '""') + '"'
