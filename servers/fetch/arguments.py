"""What the tools take: types with the words that tell a model how to use them."""

from typing import Annotated

from pydantic import Field

from .reading.page import Format

__all__ = [
    "FormatArgument",
    "MaxLengthArgument",
    "RawArgument",
    "RefreshArgument",
    "SectionArgument",
    "StartArgument",
    "UrlArgument",
    "UrlsArgument",
]

UrlArgument = Annotated[str, Field(description="http or https", max_length=8_000)]
UrlsArgument = Annotated[list[UrlArgument], Field(min_length=1, max_length=20)]
MaxLengthArgument = Annotated[int, Field(ge=1, le=999_999, description="characters to give")]
StartArgument = Annotated[int, Field(ge=0, description="goes on from this character of the same text")]
RawArgument = Annotated[bool, Field(description="the source as the site sent it")]
FormatArgument = Annotated[
    Format,
    Field(
        description="markdown and text: the main content; html: cleaned; json: JSON, or data in the page; "
        "links; metadata, with an outline of the headings"
    ),
]
SectionArgument = Annotated[
    str | None,
    Field(description="a heading, #fragment, CSS selector or JSON pointer: gives that part", max_length=500),
]
RefreshArgument = Annotated[bool, Field(description="ask the site again, past the cache")]
