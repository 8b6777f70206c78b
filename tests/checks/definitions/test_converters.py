"""The arguments of every tool survive what agents' frameworks and hosts turn their schemas into.

To survive is: the converter takes the schema, and afterwards each property, at any depth, is there and has its type,
its description, its default, its choices and those bounds that the dialect has a place for; nothing has become an
object or a value of which nothing is said. OpenAI's strict mode requires every property, whatever a server says.

`dialects.py` has the table for each. Where a converter can't be installed the tests are skipped and say why; under
CI=true they fail.
"""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import pypi
from tests.checks.definitions import gemini_cli
from tests.checks.definitions.dialects import DIALECTS, losses
from tests.checks.definitions.listings import OFFERS
from tests.wire import STATELESS

pytestmark = pytest.mark.timeout(900)  # the first one may have to build an environment

FOLDER = Path(__file__).with_name("converters")
SECONDS = 100.0
EXCEPT = {
    "everything.json_schema_2020_12_tool": "the conformance suite wants these keywords, to see whether they get lost"
}

Json = dict[str, Any]


async def schemas(folder: Path) -> Json:
    """The input schemas of all tools of all servers."""
    found = {
        f"{offer.entry.name}.{tool['name']}": tool["inputSchema"]
        for offer in OFFERS
        for tool in (await offer.listed(folder, STATELESS))["tools"]
    }
    return {name: schema for name, schema in found.items() if name not in EXCEPT}


def by_python(name: str, schemas: Json, folder: Path) -> Json:
    """What the Python package `name` makes of them. Raises Unavailable."""
    python = pypi.require(name, FOLDER / f"requirements-{name}.txt")
    script = str(FOLDER / f"convert_{name}.py")
    done = subprocess.run(
        [str(python), script], input=json.dumps(schemas), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    made: Json = json.loads(done.stdout)
    return made


CONVERTERS: dict[str, Callable[[Json, Path], Json]] = {
    **{name: partial(by_python, name) for name in ("openai", "genai", "adk")},
    "gemini-cli": gemini_cli.declared,
}


@pytest.mark.parametrize("name", DIALECTS)
async def test_no_argument_of_any_tool_is_lost(name: str, tmp_path: Path) -> None:
    before = await schemas(tmp_path)
    after = CONVERTERS[name](before, tmp_path)
    lost = [
        f"{tool}{loss}"
        for tool, made in after.items()
        for loss in ([f": {made}"] if isinstance(made, str) else losses(before[tool], made, DIALECTS[name]))
    ]
    assert lost == []
