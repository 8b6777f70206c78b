"""What the page of a prompt is given: what its form is made of, and what was filled in."""

from pathlib import Path

import pytest

from servers.prompts.server import app
from tests.servers.hosts import shown, view_of
from tests.servers.prompts.folders import front
from tests.servers.prompts.serving import folder
from tests.shared.server.peer import ERAS

GREET = front(
    "title: Greet somebody",
    "arguments:",
    "  - {name: names, type: list, required: true, title: Who, description: All of them.}",
    "  - {name: style, enum: [short, long], default: long}",
    "  - {name: tone, examples: [kind]}",
    body="{{ names|join('+') }} {{ style }}",
)


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_has_its_arguments_and_what_was_given(tmp_path: Path, era: str) -> None:
    async with shown(app, folder(tmp_path, {"greet.md": GREET}), era=era) as (host, _):
        view = await view_of(host, "render_prompt", name="greet", arguments={"names": ["a", "b"]})
    assert view == {
        "name": "greet",
        "title": "Greet somebody",
        "description": "Something.",
        "arguments": [
            {"name": "names", "title": "Who", "description": "All of them.", "type": "list", "required": True},
            {"name": "style", "type": "enum", "default": "long", "enum": ["short", "long"], "required": False},
            {"name": "tone", "type": "string", "examples": ["kind"], "required": False},
        ],
        "given": {"names": '["a", "b"]'},
    }


async def test_long_arguments_are_not_given_twice(tmp_path: Path) -> None:
    async with shown(app, folder(tmp_path, {"greet.md": GREET})) as (host, _):
        view = await view_of(host, "render_prompt", name="greet", arguments={"names": "x" * 20_000})
    assert "given" not in view
    assert view["name"] == "greet"
