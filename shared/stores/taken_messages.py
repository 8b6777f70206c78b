"""Watchers that are called when a reader has taken messages from a stream of a session. All stores use them."""

from collections.abc import Callable


class TakenMessages:
    """The watchers of the streams of one session."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        # A tuple, since an empty one takes no memory, and most sessions have no watcher.
        self._watchers: tuple[Callable[[], None], ...] = ()

    def notify_taken(self) -> None:
        """Notify the watchers that a reader has taken its messages."""
        for wake in self._watchers:
            wake()

    def watch_taken(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time a reader has taken messages, until the returned function is called."""
        self._watchers += (wake,)

        def stop() -> None:
            self._watchers = tuple(callback for callback in self._watchers if callback is not wake)

        return stop
