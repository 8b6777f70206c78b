"""Options of the test run, and what holds for all of it."""

import gc

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write what the server answers now into tests/transcripts, instead of comparing",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spares the garbage collector what stays to the end: the thousands of tests and all that they import."""
    gc.collect()
    gc.freeze()
