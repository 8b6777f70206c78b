"""The URIs of this server."""

from servers.sql.uris import Uris

URIS = Uris("postgres")
