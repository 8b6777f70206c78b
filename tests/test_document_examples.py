"""The examples of five documents about the protocol: each is in a transcript as printed, or a row of the table
in shared/protocol/wire/dialects/README.md explains why not.

The message of a transcript may have more than the document shows: additional fields and list entries.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.stapled import StapledObjectStream

from shared.extensions.dialects import DIALECTS
from shared.protocol.wire.codec import Codec
from shared.server.dispatch.connection import serve
from shared.transports.framed import framed
from tests.document_apps import document_000
from tests.document_examples import DOCUMENTS, EXAMPLE, examples
from tests.transcript_files import FOLDER, Transcript

ROOT = FOLDER.parents[1]
TABLE = ROOT / "shared/protocol/wire/dialects/README.md"
Json = dict[str, Any]


def cases() -> Iterator[Any]:
    for document in DOCUMENTS:
        for number, example in enumerate(examples(document), 1):
            yield pytest.param(document, example, id=f"{document}-{number}")


def rows() -> list[list[str]]:
    """Returns the cells of the table."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d{3} \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shows(actual: Any, printed: Any) -> bool:
    """Returns whether `printed` equals `actual`, or is the part of it that a document shows."""
    match printed:
        case "...":
            return True
        case dict():
            return isinstance(actual, dict) and all(
                name in actual and shows(actual[name], printed[name]) for name in printed
            )
        case list():
            return isinstance(actual, list) and all(any(shows(one, item) for one in actual) for item in printed)
        case _:
            is_number = {type(actual), type(printed)} == {int, float}
            return (is_number or type(actual) is type(printed)) and actual == printed


def parts(value: Any) -> Iterator[Any]:
    """Yields the value and all its parts."""
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(inner)


def messages(path: Path) -> Iterator[Any]:
    """Yields all messages of a transcript."""
    for _, text in Transcript.read(path).steps:
        try:
            yield json.loads(text)
        except ValueError:
            continue


@pytest.mark.parametrize(("document", "example"), [*cases()])
def test_each_example_is_in_a_transcript_or_explained(
    document: str, example: Json, request: pytest.FixtureRequest
) -> None:
    path = FOLDER / f"document-{document}/{example['transcript']}.txt"
    shown = [part for message in messages(path) for part in parts(message)]
    row = example.get("explained")
    if row is None:
        assert any(shows(part, example["message"]) for part in shown), "no message of the transcript shows this"
    else:
        assert [document, row] in [cells[:2] for cells in rows()], "the table has no such row"
    request.node.user_properties.append((EXAMPLE, (document, row is None)))


def test_each_row_of_the_table_names_existing_files() -> None:
    for document, section, *_, shown_by in rows():
        for name in shown_by.split(", "):
            path = FOLDER / f"document-{name}.txt" if name[:3] in DOCUMENTS else ROOT / name
            assert name == "—" or path.is_file(), f"{document}, {section}: there is no {name}"


def test_decisions_without_code_are_in_the_table() -> None:
    decided = [f"{document} {section}" for document, section, *_, shown_by in rows() if shown_by == "—"]
    assert decided == ["001 15.3", "001 16.3", "002 History, 0.4.0", "002 Implementation guide, server"]


@pytest.mark.slow
def test_commands_on_the_page_print_the_shown_output() -> None:
    shown = re.findall(r"```sh\n(.*?)```\n\n```\n(.*?)```", TABLE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown) == 2
    for command, output in shown:
        here = command.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        ran = subprocess.run(["bash", "-c", here], cwd=ROOT, capture_output=True, check=True, timeout=60)
        assert ran.stdout.decode().replace("\r\n", "\n").rstrip("\n") == output.rstrip("\n")


async def test_the_framed_example_has_the_printed_bytes() -> None:
    (example,) = examples("000")
    # The printed length includes the line end after the message.
    sent = b"Content-Length: 134\r\n\r\n" + json.dumps(example["message"], separators=(",", ":")).encode() + b"\r\n"
    to_server, at_server = anyio.create_memory_object_stream[bytes](1)
    to_client, at_client = anyio.create_memory_object_stream[bytes](1)
    transport = framed(StapledObjectStream(to_client, at_server), Codec(dialects=True))
    async with to_server, at_client, document_000().open(extensions=[DIALECTS]) as running:
        await to_server.send(sent)
        to_server.close()
        await serve(running, transport)
        await transport.aclose()
        answer = b'{"jsonrpc":"2.0","id":1,"result":"what stands in /path/to/file.txt"}'
        assert await at_client.receive() == b"Content-Length: %d\r\n\r\n%b" % (len(answer), answer)
