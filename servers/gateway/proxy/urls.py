"""URLs of servers: which are valid, and which parts may be displayed."""

from urllib.parse import urlsplit

SCHEMES = ("http", "https", "ws", "wss")


def check_url(url: str) -> str:
    """Return `url` unchanged. Raises ValueError with one line that contains no secret if it is not a server's URL."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        has_user = "@" in parts.netloc
    except ValueError:  # an invalid port or address
        is_valid = has_user = False
    if not is_valid:
        raise ValueError("the URL of a server must start with http://, https://, ws:// or wss:// and have a host")
    if has_user:
        raise ValueError(
            "everyone who sees the URL sees its user name and password: remove the part before the @, and "
            "send a token or the Authorization header instead"
        )
    return url


def display_url(url: str) -> str:
    """Return the URL without the parts that may be secret: user name, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
