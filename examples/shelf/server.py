"""A book server with state, options, a list of resources, completion, images and its own error."""

from collections.abc import AsyncIterator

from pydantic import BaseModel, Field

from shared import (
    Context,
    ImageContent,
    Implementation,
    Opening,
    Resource,
    ResourceNotFound,
    Server,
    ToolError,
    expand_uri,
)
from shared.program.run import run

BOOK = "book://{title}"


class Settings(BaseModel):
    """The options of the server."""

    first: str = Field(default="Emma", description="title of the first book")


class Loan(BaseModel):
    """The form that the user fills in."""

    days: int = Field(default=14, ge=1, le=60)


app = Server[dict[str, str]](
    Implementation(name="shelf", version="1.0.0"), settings=Settings, instructions="Ask before you lend a book twice."
)


@app.lifespan
async def open_shelf(opening: Opening) -> AsyncIterator[dict[str, str]]:
    yield {opening.settings.first: "on the shelf"}  # what follows the yield runs at the end


@app.tool(destructive=False)
async def lend(ctx: Context[dict[str, str]], title: str) -> str:
    """Lend a book to the user."""
    is_at = ctx.state[title]
    answer = await ctx.ask(f"lend {title}", f"{title} is {is_at}. For how many days?", Loan)
    if answer.data is None:
        raise ToolError("the user does not want the book")
    ctx.state[title] = f"lent for {answer.data.days} days"
    ctx.changes.resource(expand_uri(BOOK, title=title))
    return ctx.state[title]


@app.error(KeyError)
def unknown(error: KeyError) -> ToolError:
    return ToolError(f"there is no book {error}")


@app.tool(read_only=True)
async def cover(title: str) -> ImageContent:
    """Show the cover of a book."""
    return ImageContent.of(f"<svg><text>{title}</text></svg>".encode(), "image/svg+xml")


@app.resource(BOOK, mime_type="text/plain")
async def book(ctx: Context[dict[str, str]], title: str) -> str | None:
    """Where a book is."""
    return ctx.state.get(title)


@app.lists_resources
async def list_books(ctx: Context[dict[str, str]]) -> list[Resource]:
    return [Resource(uri=expand_uri(BOOK, title=title), name=title) for title in ctx.state]


@app.completes("resource", BOOK, "title")
async def complete_title(ctx: Context[dict[str, str]], typed: str, settled: dict[str, str]) -> list[str]:
    return [title for title in ctx.state if title.startswith(typed)]


@app.on_subscribe
async def subscribe(ctx: Context[dict[str, str]], uri: str) -> str:
    if uri not in [resource.uri for resource in await list_books(ctx)]:
        raise ResourceNotFound(uri)
    return uri


if __name__ == "__main__":
    raise SystemExit(run(app))
