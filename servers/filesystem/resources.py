"""Files as resources under their `file:` URIs, and notice of their changes."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio import to_thread

from shared import BlobResourceContents, InvalidParams, Resource, ResourceNotFound, TextResourceContents

from .app import JSON_GROWTH, Ctx, app
from .errors import FilesError
from .files import Files
from .reading.read import mime_of


@contextmanager
def _served(uri: str) -> Iterator[None]:
    """Says what is wrong with a resource as the protocol does."""
    try:
        yield
    except FilesError as error:
        if error.code in ("not_found", "outside_roots", "denied", "bad_path", "not_a_directory"):
            raise ResourceNotFound(uri) from None
        raise InvalidParams(f"{error.code}: {error.reason}") from None


@app.resource("file:///{+path}", name="file", title="A file in an allowed directory")
async def read_resource(ctx: Ctx, path: str) -> TextResourceContents | BlobResourceContents:
    """The contents of a file: text where it is UTF-8, else bytes."""
    uri, files = f"file:///{path}", ctx.state
    with _served(uri):
        read = await files.read_bytes(files.place(uri), ctx.budget.result_bytes // JSON_GROWTH)
    try:
        return TextResourceContents(uri=uri, mime_type=read.mime, text=read.data.decode())
    except UnicodeDecodeError:
        return BlobResourceContents.of(uri, read.data, read.mime)


@app.lists_resources
async def list_resources(ctx: Ctx) -> list[Resource]:
    """The files that stand directly in the allowed directories."""
    found = await to_thread.run_sync(ctx.state.top_level, ctx.budget.entries)
    return [Resource(uri=one.uri, name=one.name, size=one.size, mime_type=mime_of(one.name)) for one in found]


@app.on_subscribe
async def _watch(uri: str) -> str:
    files: Files = app.state
    if not uri.startswith("file:"):
        raise ResourceNotFound(uri)
    with _served(uri):
        place = files.place(uri)
        files.beneath.roots.require_allowed(place)
        key = files.uri(place)
        await files.watcher.watch(key, place)
    return key


@app.on_unsubscribe
async def _unwatch(key: str) -> None:
    files: Files = app.state
    files.watcher.unwatch(key)


@app.on_wanted
async def _watch_listing() -> None:
    files: Files = app.state

    async def tell() -> None:
        app.changes.resources()

    await files.watcher.watch_listing(tell)
