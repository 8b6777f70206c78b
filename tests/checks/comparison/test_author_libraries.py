"""What an author meets in ten minutes (A1 to A17), tried with our library and with FastMCP.

Each row is a file that an author might write, mostly with a mistake. Ours has to pass; `make compare` tries FastMCP
as well, and prints what it does today.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from tests import pypi
from tests.checks.benchmarks import prompts_peers
from tests.ports import free_port
from tests.raw import Raw
from tests.wire import Json, Wire

PEER = f"fastmcp-{prompts_peers.versions()[prompts_peers.PACKAGE]}"
KIND = "authors'"
SERVERS = ["ours", PEER]
ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30.0

BEGINNINGS = {
    "ours": """
        from shared import Context, Implementation, Server
        from shared.program.run import run
        app = Server[None](Implementation(name="dice", version="1"))
        """,
    PEER: """
        from fastmcp import Context, FastMCP
        app = FastMCP("dice")
        """,
}
ENDS = {
    "ours": 'if __name__ == "__main__": raise SystemExit(run(app))',
    PEER: 'if __name__ == "__main__": app.run("stdio", show_banner=False, log_level="WARNING")',
}
IMPORTS = """
    import asyncio, threading, time
    from pydantic import BaseModel
    """


class Library:
    """One of the libraries, and the file that is written with it."""

    def __init__(self, name: str, python: str, folder: Path) -> None:
        self.name = name
        self.file = folder / "dice.py"
        self.command = [python, str(self.file)]

    def write(self, source: str) -> None:
        """Write the file."""
        parts = [IMPORTS, BEGINNINGS[self.name], source, ENDS[self.name]]
        self.file.write_text("\n".join(map(dedent, parts)))

    async def refuses(self, source: str, *reasons: str) -> bool:
        """Return True if the file ends at import with a last line that has all the reasons."""
        self.write(source)
        async with Wire(self.command, env=ENVIRONMENT, check=False) as wire:
            try:
                await wire.initialize()
            except EOFError:
                pass
            else:
                return False
        return all(reason in wire.stderr.strip().splitlines()[-1] for reason in reasons)

    async def call(self, source: str, tool: str = "roll") -> tuple[Json, str]:
        """Return the answer of a tool without arguments, and what the author reads."""
        self.write(source)
        async with Wire(self.command, env=ENVIRONMENT, check=False) as wire:
            await wire.initialize()
            answer = await wire.request("tools/call", {"name": tool, "arguments": {}}, timeout=PATIENCE)
        return answer, wire.stderr


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def failed(answer: Json) -> bool:
    return "error" in answer or bool(answer["result"].get("isError"))


def text_of(answer: Json) -> str:
    return "" if "error" in answer else answer["result"]["content"][0]["text"]


async def a1_an_argument_without_a_type_is_refused_at_import(library: Library) -> bool:
    return await library.refuses(
        '''
        @app.tool()
        def roll(sides) -> int:
            """Roll."""
            return 4
        ''',
        "sides",
        "dice.py:",
    )


async def a2_a_second_tool_of_the_same_name_is_refused_at_import(library: Library) -> bool:
    tool = '''
        @app.tool()
        def roll() -> int:
            """Roll."""
            return 4
        '''
    return await library.refuses(tool + tool, "roll", "dice.py:")


async def a3_a_tool_without_a_docstring_is_refused_at_import(library: Library) -> bool:
    return await library.refuses("@app.tool()\ndef roll() -> int: return 4", "docstring", "dice.py:")


async def a4_a_tool_without_a_return_type_is_refused_or_works(library: Library) -> bool:
    source = '''
        @app.tool()
        def roll():
            """Roll."""
            return 4
        '''
    return (
        await library.refuses(source, "return annotation", "dice.py:")
        or text_of((await library.call(source))[0]) == "4"
    )


async def a5_an_option_that_is_not_known_is_refused_with_the_known_ones(library: Library) -> bool:
    source = '''
        @app.tool(readonly=True)
        def roll() -> int:
            """Roll."""
            return 4
        '''
    return await library.refuses(source, "readonly", "name, title", "dice.py:")


async def a6_a_default_that_breaks_its_type_is_refused_at_import(library: Library) -> bool:
    source = '''
        @app.tool()
        def roll(sides: int = None) -> int:
            """Roll."""
            return 4
        '''
    return await library.refuses(source, "sides", "dice.py:")


async def a7_the_decorator_needs_no_parentheses(library: Library) -> bool:
    answer, _ = await library.call('''
        @app.tool
        def roll() -> int:
            """Roll."""
            return 4
        ''')
    return text_of(answer) == "4"


async def a8_a_plain_function_runs_in_a_thread(library: Library) -> bool:
    answer, _ = await library.call('''
        @app.tool()
        def roll() -> str:
            """Roll."""
            return str(threading.current_thread() is threading.main_thread())
        ''')
    return text_of(answer) == "False"


FOREIGN = '''
    @app.tool()
    def roll() -> int:
        """Roll."""
        raise ValueError("password")
    '''


async def a9_the_author_reads_the_traceback_of_an_exception(library: Library) -> bool:
    answer, log = await library.call(FOREIGN)
    return failed(answer) and "Traceback" in log and "dice.py" in log


async def a10_the_client_does_not_read_the_text_of_an_exception(library: Library) -> bool:
    answer, _ = await library.call(FOREIGN)
    return failed(answer) and "password" not in str(answer)


WRONG = {
    "dict[str, int]": '{"a": "text"}',
    "list[int]": "None",
    "int": '"abc"',
    "Die": 'Die.model_construct(sides="six")',
}


async def a11_a_result_that_breaks_its_schema_is_never_sent(library: Library) -> bool:
    kinds = [
        f'''
        class Die(BaseModel):
            sides: int
        @app.tool()
        def roll() -> {declared}:
            """Roll."""
            return {returned}
        '''
        for declared, returned in WRONG.items()
    ]
    return all([failed((await library.call(source))[0]) for source in kinds])


async def a12_a_wrong_result_is_logged_with_what_was_declared(library: Library) -> bool:
    answer, log = await library.call('''
        @app.tool()
        def roll() -> int:
            """Roll."""
            return "abc"
        ''')
    return failed(answer) and "roll" in log and "returned str, but declares int" in log


async def a13_a_coroutine_that_blocks_the_loop_is_shown_with_its_line(library: Library) -> bool:
    source = '''
        @app.tool()
        async def roll() -> int:
            """Roll."""
            time.sleep(0.5)
            return 4
        '''
    if library.name != "ours":
        _, log = await library.call(source)
        return "time.sleep" in log
    library.write(source)
    port = free_port()
    command = [sys.executable, "-m", "servers", "dev", str(library.file), "--no-browser", "--port", str(port)]
    call = ["call", f"http://127.0.0.1:{port}/dice/mcp", "roll"]
    with Raw(command, env=ENVIRONMENT) as process:
        assert process.process.stderr is not None
        lines = map(bytes.decode, process.process.stderr)
        next(line for line in lines if "the workbench is at" in line)
        await anyio.run_process([sys.executable, "-m", "servers", *call], env=ENVIRONMENT)
        next(line for line in lines if "the event loop has been blocked" in line)
        shown = any("in roll" in line for line in lines)
        process.process.terminate()
        process.wait()
    return shown


async def a14_a_change_that_nobody_can_hear_is_logged(library: Library) -> bool:
    if library.name != "ours":
        return False  # has no call for changes to a resource
    _, log = await library.call('''
        @app.tool()
        async def roll(ctx: Context[None]) -> int:
            """Roll."""
            ctx.changes.resource("dice://last")
            return 4
        ''')
    return "no one can be notified that dice://last changed" in log


async def a15_a_method_without_its_object_is_refused_with_the_way_out(library: Library) -> bool:
    return await library.refuses(
        '''
        class Dice:
            @app.tool()
            def roll(self) -> int:
                """Roll."""
                return 4
        ''',
        "object",
        "dice.py:",
    )


async def a16_a_print_does_not_break_the_connection(library: Library) -> bool:
    answer, _ = await library.call('''
        @app.tool()
        def roll() -> int:
            """Roll."""
            print("rolling {")
            return 4
        ''')
    return text_of(answer) == "4"


async def a17_a_forgotten_await_fails_the_call_and_is_logged(library: Library) -> bool:
    progress = "ctx.progress(1, 2)" if library.name == "ours" else "ctx.report_progress(1, 2)"
    context = "Context[None]" if library.name == "ours" else "Context"
    answer, log = await library.call(f'''
        @app.tool()
        async def roll(ctx: {context}) -> int:
            """Roll."""
            {progress}
            return 4
        ''')
    return failed(answer) and "await" in log


ROWS: list[Callable[[Library], Awaitable[bool]]] = [
    row for name, row in list(globals().items()) if name[:1] == "a" and name[1:2].isdigit()
]


def _python(name: str) -> str:
    if name == "ours":
        return sys.executable
    return str(pypi.require("fastmcp-server", prompts_peers.REQUIREMENTS))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_an_author(
    row: Callable[[Library], Awaitable[bool]],
    server: str,
    tmp_path: Path,
    judge: Callable[[str, str, Awaitable[bool]], Awaitable[None]],
) -> None:
    await judge(row.__name__, server, row(Library(server, _python(server), tmp_path)))
