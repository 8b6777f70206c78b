"""Current conditions that keep the joined servers from working as their users expect."""

from collections.abc import Iterator, MutableMapping, Sequence

from shared.protocol.identity import LogMessage

from .server import Part


class Conditions(MutableMapping[str, LogMessage]):
    """The conditions of all servers that are open now, and the gateway's own conditions. Only the gateway's own can
    be changed."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
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
        running = [(part.name, part.running) for part in self._parts]
        inherited = {
            f"{name} {key}": message
            for name, run in running
            if run is not None
            for key, message in run.conditions.active.items()
        }
        return {**inherited, **self._own}
