"""The lasting problems of the joined servers that users should know, such as unreadable files."""

from collections.abc import Iterator, MutableMapping, Sequence

from shared.protocol.identity import LogMessage

from .server import JoinedServer


class Conditions(MutableMapping[str, LogMessage]):
    """The conditions of all servers that are open now, with the name of the server in their keys, and those of the
    gateway itself. Only the gateway's own can be changed."""

    def __init__(self, servers: Sequence[JoinedServer]) -> None:
        self._servers = servers
        self._own: dict[str, LogMessage] = {}

    def __getitem__(self, key: str) -> LogMessage:
        return self._all()[key]

    def __setitem__(self, key: str, message: LogMessage) -> None:
        self._own[key] = message

    def __delitem__(self, key: str) -> None:
        del self._own[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, LogMessage]:
        runs = [(server.name, server.running) for server in self._servers]
        inherited = {
            f"{name} {key}": message
            for name, run in runs
            if run is not None
            for key, message in run.conditions.active.items()
        }
        return {**inherited, **self._own}
