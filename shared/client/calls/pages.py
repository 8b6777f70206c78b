"""Converts results to models, and reads lists page by page."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from ...errors import InvalidResult, McpError
from ...protocol.types.base import Wire, locate_first_error
from ...protocol.types.results import ResultPage
from .raw_calls import MAX_PAGES, Requester

Result = TypeVar("Result", bound=Wire)
Page = TypeVar("Page", bound=ResultPage)


def read_result(method: str, model: type[Result], result: dict[str, Any]) -> Result:
    """Return the result of `method` as a model. Raises InvalidResult."""
    try:
        return model.model_validate(result)
    except ValidationError as error:
        path, fault = locate_first_error(error, result)
        raise InvalidResult(method, path, fault, result) from None


async def iter_pages(
    request: Requester, method: str, model: type[Page], params: Mapping[str, Any] | None = None
) -> AsyncIterator[Page]:
    """Iterate over the pages of a list; each is requested when the previous one has been consumed.

    Raises the same errors as `request`, InvalidResult, and McpError for an endless list.
    """
    cursors: set[str] = set()
    page_params: dict[str, Any] = {**(params or {})}
    for _ in range(MAX_PAGES):
        page = read_result(method, model, await request(method, page_params))
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in cursors:
            raise McpError(f"pagination of {method} does not end: the same cursor was returned twice")
        cursors.add(cursor)
        page_params = {**page_params, "cursor": cursor}
    raise McpError(f"{method} has more than {MAX_PAGES} pages")
