"""The rows that the Python peers go through, and how their outcomes are printed. Runs in the environment of a peer.

`drive_typescript.mjs` has the same rows once more, and `test_others.py` their names.
"""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any
from urllib.parse import unquote

from driving import FIELDS, SECONDS, Connection, Peer, Task

STEPS = 20


def same(found: Any, wanted: Any) -> None:
    """Raises where they differ."""
    if found != wanted:
        raise AssertionError(f"{found!r} is not {wanted!r}")


def holds(found: Any, what: str) -> None:
    """Raises where it is not so."""
    if not found:
        raise AssertionError(what)


def text(result: dict[str, Any]) -> str:
    """The text of a tool result that is no error."""
    holds(not result.get("isError"), f"an error: {result}")
    return result["content"][0]["text"]


class Outcomes:
    """Runs rows, each within a limit, and keeps what becomes of them."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    async def row(self, name: str, work: Awaitable[None]) -> None:
        """Runs one row."""
        try:
            async with asyncio.timeout(SECONDS):
                await work
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
            self.found[name] = f"{type(error).__name__}: {error}"
        else:
            self.found[name] = "ok"


async def _all_rows(peer: Peer, task: Task, outcomes: Outcomes) -> None:
    for server, rows in (
        ("filesystem", _rows_of_filesystem),
        ("sqlite", _rows_of_sqlite),
        ("bench", _rows_of_bench),
        ("everything", _rows_of_everything),
        ("fetch", _rows_of_fetch),
        ("prompts", _rows_of_prompts),
        ("postgres", _rows_of_postgres),
    ):
        if server in task.servers:
            async with peer.connect(server) as client:
                await rows(client, task, outcomes)
    if "bench" in task.servers and task.transport.endswith("+token"):
        await outcomes.row("refuses a wrong token", _refused(peer))


async def _rows_of_filesystem(client: Connection, task: Task, outcomes: Outcomes) -> None:
    row = outcomes.row
    await row("opens", _opens(client, task))
    await row("lists tools", _lists_tools(client))
    await row("text result", _text_result(client, task))
    await row("data result", _data_result(client, task))
    await row("failure is a result", _failure(client, task))
    await row("lists resources", _lists_resources(client, task))
    await row("lists templates", _lists_templates(client))
    await row("reads a file", _reads_a_file(client, task))
    await row("changed file is heard of", _changed_file(client, task))
    await row("list of resources changes", _new_file(client, task))
    if not task.modern:
        await row("ping", client.ping())


async def _rows_of_bench(client: Connection, task: Task, outcomes: Outcomes) -> None:
    row = outcomes.row
    await row("long result", _long_result(client))
    await row("data that is no object", _total(client, task))
    await row("argument in a header", _header(client))
    await row("unknown tool is an error", _unknown_tool(client))
    await row("reads bytes", _reads_bytes(client))
    await row("reads by a template", _reads_by_template(client))
    await row("long list in pages", _pages(client))
    await row("burst of progress", _burst(client))
    await row("cancelled call is stopped", _cancel(client, task))
    await row("log messages", _logging(client))
    await row("list of tools changes", _list_changes(client, "tools", "add_tool", f"{task.key}-tool"))
    await row("list of prompts changes", _list_changes(client, "prompts", "add_prompt", f"{task.key}-prompt"))
    await row("form is filled in", _says(client, "book", {}, "Oslo, 3 nights in winter"))
    await row("two forms in a row", _says(client, "introduce", {}, "Ada, 36"))
    await row("two forms at once", _says(client, "survey", {}, "Ada, 36"))
    await row("page is visited", _says(client, "sign_in", {}, "accept"))
    await row("model is asked", _says(client, "rhyme", {"word": "snake"}, "parrot: lake"))
    await row("roots are asked for", _says(client, "whereabouts", {}, "home=file:///home, tmp=file:///tmp"))
    await row("lists prompts", _lists_prompts(client))
    await row("renders a prompt", _renders(client))
    await row("prompt asks first", _prompt_asks(client))
    await row("completes a prompt", _completes(client, {"type": "ref/prompt", "name": "greet"}, "tone", "w"))
    city = {"type": "ref/resource", "uri": "bench://city/{name}"}
    await row("completes a template", _completes(client, city, "name", "ber"))


async def _rows_of_everything(client: Connection, task: Task, outcomes: Outcomes) -> None:
    row = outcomes.row
    await row("every kind of content", _every_content(client))
    await row("form with defaults", _form(client, "test_elicitation_sep1034_defaults", "status"))
    await row("form with choices", _form(client, "test_elicitation_sep1330_enums", "titledMulti"))
    await row("watched resource changes", _watched(client))
    await row("progress in order", _progress(client))
    await row("broken stream", _says(client, "test_reconnection", {}, "Reconnection test completed"))
    if hasattr(client, "begin_task"):
        # Not last: this client fails where it is told something, here how the task is, just when it is closed.
        await row("task is cancelled", _cancelled_task(client))
        await row("task is followed", _task(client, "slow_compute", {"seconds": 0.1, "label": "it"}, "it took 0.1 s"))
        await row("task asks", _task(client, "confirm_delete", {"filename": "a"}, "Confirmed: a"))
        await row("task asks twice", _task(client, "multi_input", {}, "name: accept, confirm: accept"))
        await row("task fails", _failing_task(client))


async def _task(client: Any, tool: str, arguments: dict[str, Any], said: str) -> None:
    status, result = await client.end_task(await client.begin_task(tool, arguments))
    same(status, "completed")
    holds(text(result).startswith(said), text(result))


async def _failing_task(client: Any) -> None:
    status, result = await client.end_task(await client.begin_task("failing_job", {}))
    same((status, result["isError"], result["content"][0]["text"]), ("failed", True, "the job has failed"))


async def _cancelled_task(client: Any) -> None:
    same(await client.cancel_task(await client.begin_task("slow_compute", {"seconds": 60})), "cancelled")


async def _opens(client: Connection, task: Task) -> None:
    opened = client.opened()
    same(opened["version"], task.version)
    if opened["name"] is not None:
        same(opened["name"], "filesystem")


async def _lists_tools(client: Connection) -> None:
    listed = {tool["name"]: tool for tool in await client.all("tools")}
    same(listed["read_text_file"]["inputSchema"]["required"], ["path"])
    holds(listed["list_directory"]["description"], "no description")


async def _text_result(client: Connection, task: Task) -> None:
    path = task.folder / f"{task.key}.txt"
    same(text(await client.call("read_text_file", {"path": str(path)})), "before\n")


async def _data_result(client: Connection, task: Task) -> None:
    result = await client.call("get_file_info", {"path": str(task.folder / f"{task.key}.txt")})
    same(result["structuredContent"]["size"], len("before\n"))


async def _failure(client: Connection, task: Task) -> None:
    result = await client.call("read_text_file", {"path": str(task.folder / "missing")})
    same(result["isError"], True)
    holds(result["content"][0]["text"].startswith("not_found: "), str(result))


async def _lists_resources(client: Connection, task: Task) -> None:
    uri = (task.folder / f"{task.key}.txt").as_uri()
    holds(uri in {resource["uri"] for resource in await client.all("resources")}, "the file is not listed")


async def _lists_templates(client: Connection) -> None:
    same([one["uriTemplate"] for one in await client.all("resourceTemplates")], ["file:///{+path}{?offset,length}"])


async def _rows_of_sqlite(client: Connection, task: Task, outcomes: Outcomes) -> None:
    await outcomes.row("asks a database", _asks_a_database(client))
    await outcomes.row("reads a row", _reads_a_row(client))
    await outcomes.row("changed table is heard of", _changed_table(client, task))


async def _asks_a_database(client: Connection) -> None:
    holds("read_query" in {tool["name"] for tool in await client.all("tools")}, "there is no such tool")
    said = text(await client.call("read_query", {"query": "SELECT Name FROM Genre WHERE GenreId = 2"}))
    holds("Jazz" in said, said)


async def _reads_a_row(client: Connection) -> None:
    (contents,) = (await client.read("sqlite:///chinook/Genre/2"))["contents"]
    same(json.loads(contents["text"])["row"], {"GenreId": 2, "Name": "Jazz"})


async def _changed_table(client: Connection, task: Task) -> None:
    uri = "sqlite:///chinook/Genre"
    change = {"query": "INSERT INTO Genre (Name) VALUES (?)", "parameters": [task.key]}
    async with client.listening(uri=uri) as heard:
        text(await client.call("write_query", change))
        same((await heard())["uri"], uri)


async def _rows_of_postgres(client: Connection, task: Task, outcomes: Outcomes) -> None:
    await outcomes.row("describes every table", _describes_every_table(client))
    await outcomes.row("reads pages to the end", _reads_pages(client))
    await outcomes.row("finds a row", _finds_a_row(client))
    await outcomes.row("table that changes is heard of", _table_of_postgres(client, task))


async def _describes_every_table(client: Connection) -> None:
    uris = [one["uri"] for one in await client.all("resources") if one["uri"].startswith("postgres:///sample/")]
    tables = [unquote(uri.rpartition("/")[2]) for uri in uris if not uri.endswith("/schema")]
    holds(len(tables) >= 25, f"there are {tables}")
    for table in tables:
        text(await client.call("describe_table", {"table_name": table, "sample": 1}))


async def _reads_pages(client: Connection) -> None:
    arguments: dict[str, Any] = {"query": 'SELECT id FROM "order" WHERE id > $1 ORDER BY id', "parameters": [100]}
    seen: list[Any] = []
    while True:
        said = text(await client.call("read_query", {**arguments, "max_rows": 400}))
        seen += [json.loads(line)[0] for line in said.splitlines() if line.startswith("[")]
        _, _, cursor = said.splitlines()[0].partition("continue with cursor ")
        if not cursor:
            break
        arguments["cursor"] = cursor
    same(seen, [*range(101, 1_001)])


async def _finds_a_row(client: Connection) -> None:
    (contents,) = (await client.read("postgres:///sample/order_line/7,2"))["contents"]
    same(json.loads(contents["text"])["row"], {"order_id": 7, "line": 2, "sku": "SKU-0015", "quantity": 2})


async def _table_of_postgres(client: Connection, task: Task) -> None:
    uri = "postgres:///sample/warehouse.document"
    change = {"query": "INSERT INTO warehouse.document VALUES ($1, true)", "parameters": [task.key]}
    async with client.listening(uri=uri) as heard:
        text(await client.call("write_query", change))
        same((await heard())["uri"], uri)


async def _rows_of_fetch(client: Connection, task: Task, outcomes: Outcomes) -> None:
    await outcomes.row("reads a web page", _reads_a_page(client, task))
    await outcomes.row("reads an image of the web", _reads_an_image(client, task))


async def _rows_of_prompts(client: Connection, task: Task, outcomes: Outcomes) -> None:
    await outcomes.row("renders a file", _renders_a_file(client))
    style = _completes(client, {"type": "ref/prompt", "name": "commit-message"}, "style", "co")
    await outcomes.row("completes for a file", style)
    await outcomes.row("new file is a prompt", _new_prompt(client, task))


async def _renders_a_file(client: Connection) -> None:
    names = [prompt["name"] for prompt in await client.all("prompts")]
    holds("commit-message" in names, f"it lists {names}")
    (message,) = (await client.prompt("commit-message", {"diff": "{{ 7 * 7 }}"}))["messages"]
    holds("{{ 7 * 7 }}" in message["content"]["text"], message)


async def _new_prompt(client: Connection, task: Task) -> None:
    name = f"{task.key}-{task.transport[:4]}-{task.era}"
    await client.all("prompts")
    async with client.listening(prompts=True) as heard:
        # Renamed, since the server warns of a file that it reads before its text is written.
        unfinished = task.folder / "library" / f"{name}.unfinished"
        unfinished.write_text("---\ndescription: New.\n---\nHello\n")
        unfinished.rename(unfinished.with_suffix(".md"))
        await heard()
    holds(name in [prompt["name"] for prompt in await client.all("prompts")], "the prompt is not listed")


async def _reads_a_page(client: Connection, task: Task) -> None:
    result = await client.call("fetch", {"url": f"{task.site}/story", "max_length": 100_000})
    holds("Paragraph number 299 tells" in result["content"][0]["text"], result)


async def _reads_an_image(client: Connection, task: Task) -> None:
    result = await client.call("fetch", {"url": f"{task.site}/pixel"})
    same([block["type"] for block in result["content"]], ["text", "image"])


async def _reads_a_file(client: Connection, task: Task) -> None:
    uri = (task.folder / f"{task.key}.txt").as_uri()
    (contents,) = (await client.read(uri))["contents"]
    same((contents["uri"], contents["text"]), (uri, "before\n"))


async def _changed_file(client: Connection, task: Task) -> None:
    path = task.folder / f"{task.key}.txt"
    async with client.listening(uri=path.as_uri()) as heard:
        path.write_text("after\n")
        same((await heard())["uri"], path.as_uri())
    (contents,) = (await client.read(path.as_uri()))["contents"]
    same(contents["text"], "after\n")


async def _new_file(client: Connection, task: Task) -> None:
    path = task.folder / f"{task.key}.new"
    await client.all("resources")
    async with client.listening(resources=True) as heard:
        path.write_text("new\n")
        await heard()
    holds(path.as_uri() in {one["uri"] for one in await client.all("resources")}, "the new file is not listed")


async def _long_result(client: Connection) -> None:
    same(text(await client.call("long", {"characters": 440_000})), "ø" * 440_000)


async def _total(client: Connection, task: Task) -> None:
    """Before 2026-07-28 it travels as text alone."""
    result = await client.call("total", {"numbers": [1, 2, 39]})
    same(text(result), "the total is 42")
    same(result.get("structuredContent"), 42 if task.modern else None)


async def _header(client: Connection) -> None:
    await client.all("tools")
    same(text(await client.call("weather", {"city": "Tromsø", "days": 3})), "3 days of rain in Tromsø")


async def _unknown_tool(client: Connection) -> None:
    try:
        result = await client.call("nothing")
    except Exception as error:
        if "unknown tool: nothing" not in str(error):
            raise
    else:
        raise AssertionError(f"no error: {result}")


async def _reads_bytes(client: Connection) -> None:
    (contents,) = (await client.read("bench://bytes"))["contents"]
    same(contents["blob"], "AP8Q")


async def _reads_by_template(client: Connection) -> None:
    (contents,) = (await client.read("bench://city/Oslo"))["contents"]
    same(contents["text"], "the city of Oslo")


async def _pages(client: Connection) -> None:
    seen = [resource["uri"] for resource in await client.all("resources")]
    same(len(seen), len(set(seen)))
    holds({f"bench://page/{number}" for number in range(250)} <= set(seen), "pages are missing")


async def _reported(client: Connection, tool: str, arguments: dict[str, Any]) -> list[tuple[float, float | None]]:
    seen: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, _message: str | None) -> None:
        seen.append((done, total))

    text(await client.call(tool, arguments, progress))
    return seen


async def _burst(client: Connection) -> None:
    """The reports and the answer come in one go."""
    same(await _reported(client, "count", {"steps": STEPS}), [(step, STEPS) for step in range(1, STEPS + 1)])


async def _progress(client: Connection) -> None:
    """There is a pause between one report and the next."""
    same(await _reported(client, "test_tool_with_progress", {}), [(0, 100), (50, 100), (100, 100)])


async def _cancel(client: Connection, task: Task) -> None:
    await client.cancelled("hold", {"key": task.key})
    same(text(await client.call("when_stopped", {"key": task.key})), "stopped")


async def _logging(client: Connection) -> None:
    levels = ["warning", "error"] if await client.from_warning() else ["debug", "info", "warning", "error"]
    client.ears.logs.clear()
    await client.call("chatter")
    same(client.ears.logs, [{"level": level, "logger": "bench", "data": {"said": level}} for level in levels])


async def _list_changes(client: Connection, kind: str, tool: str, name: str) -> None:
    await client.all(kind)
    async with client.listening(**{kind: True}) as heard:
        same(text(await client.call(tool, {"name": name})), name)
        await heard()
    holds(name in {one["name"] for one in await client.all(kind)}, f"{name} is not listed")


async def _says(client: Connection, tool: str, arguments: dict[str, Any], wanted: str) -> None:
    same(text(await client.call(tool, arguments)), wanted)


async def _lists_prompts(client: Connection) -> None:
    listed = {prompt["name"]: prompt for prompt in await client.all("prompts")}
    same([one["name"] for one in listed["greet"]["arguments"]], ["name", "tone"])


async def _renders(client: Connection) -> None:
    rendered = await client.prompt("greet", {"name": "Ada", "tone": "cool"})
    same([message["role"] for message in rendered["messages"]], ["user", "assistant"])
    same(rendered["messages"][0]["content"]["text"], "Say hello to Ada, in a cool way.")


async def _prompt_asks(client: Connection) -> None:
    (message,) = (await client.prompt("ask_first"))["messages"]
    same(message["content"]["text"], "I am Ada.")


async def _completes(client: Connection, reference: dict[str, str], name: str, value: str) -> None:
    wanted = {"w": ["warm", "witty"], "co": ["conventional"], "ber": ["Bergen", "Berlin", "Bern"]}
    same(await client.complete(reference, name, value), wanted[value])


async def _every_content(client: Connection) -> None:
    kinds = [block["type"] for block in (await client.call("all_content"))["content"]]
    same(kinds, ["text", "text", "image", "audio", "resource", "resource", "resource_link"])


async def _form(client: Connection, tool: str, name: str) -> None:
    said = text(await client.call(tool))
    holds("action=accept" in said, said)
    same(json.loads(said.partition("content=")[2])[name], FIELDS[name])


async def _watched(client: Connection) -> None:
    uri = "test://watched-resource"
    async with client.listening(uri=uri) as heard:
        await client.call("trigger_resource_update")
        same((await heard())["uri"], uri)


async def _refused(peer: Peer) -> None:
    try:
        async with peer.connect("bench", token="another-token") as client:
            await client.all("tools")
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001 - each peer has an error of its own
        return
    raise AssertionError("the wrong token was let in")


def drive(peer: Peer, task: Task) -> None:
    """Runs every row and prints one JSON object: what became of each."""
    outcomes = Outcomes()

    async def run() -> None:
        try:
            await _all_rows(peer, task, outcomes)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
            outcomes.found["driver"] = f"{type(error).__name__}: {error}"

    asyncio.run(run())
    print(json.dumps(outcomes.found))
