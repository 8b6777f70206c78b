"""Log records that only one handler gets, so that a command can decide what to show of them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def take_records(name: str, handler: logging.Handler) -> Iterator[None]:
    """During the block, pass the records of the logger `name` and its descendants, from level INFO on, to `handler`
    and no other handler."""
    logger = logging.getLogger(name)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
