"""Log records that go to one command, which shows those it needs, and to no other handler."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def take_records(name: str, handler: logging.Handler) -> Iterator[None]:
    """Give `handler` the records of level INFO and above from the logger `name` and its descendants for the duration
    of the block."""
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
