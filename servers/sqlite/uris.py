"""The URIs of this server."""

from servers.common.sql.uris import Uris

URIS = Uris("sqlite")
