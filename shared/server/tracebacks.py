"""What an exception holds of the call that it ended, given back."""

import traceback

__all__ = ["release"]


def release(error: BaseException) -> None:
    """Has `error`, and what led to it, hold nothing of the call that is over.

    A traceback holds the frames that the exception left, and these hold the arguments of the call. Where a frame
    holds the exception as well, by a name or by the future that it came from, only the garbage collector would ever
    free them: it counts objects, and a call of a few objects may have megabytes of arguments.
    """
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop()
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        waiting += filter(None, (one.__cause__, one.__context__))
        one.__cause__ = one.__context__ = None
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
