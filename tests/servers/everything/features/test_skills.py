"""The skill of the bench server: its files agree with its entry and with the features of the server."""

import hashlib
import re

import pytest
import yaml

from servers.everything.features.skills import FILES, FOLDER, FRONTMATTER
from tests.servers.everything.peer import HANDSHAKES, bench, listed
from tests.wire import STATELESS


def test_the_front_matter_equals_that_of_the_entry() -> None:
    _, head, body = (FOLDER / "SKILL.md").read_text().split("---\n", 2)
    assert yaml.safe_load(head) == FRONTMATTER
    assert body.strip()


def test_every_file_of_the_folder_is_served() -> None:
    assert {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()} == set(FILES)


async def test_skill_files_have_the_listed_digest_and_size() -> None:
    async with bench(STATELESS) as peer:
        (skill,) = await listed(peer, "skills")
        assert skill == (await peer.request("skills/get", {"uri": skill["uri"]}))["result"]["skill"]
        for file in skill["resources"]:
            (contents,) = (await peer.request("resources/read", {"uri": file["uri"]}))["result"]["contents"]
            data = contents["text"].encode()
            assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (file["size"], file["digest"])


@pytest.mark.parametrize("version", [HANDSHAKES[0], HANDSHAKES[-1]])
async def test_older_clients_read_the_skill_as_resources(version: str) -> None:
    async with bench(version) as peer:
        found = {resource["uri"]: resource for resource in await listed(peer, "resources")}
        assert found["skill://try-a-client/SKILL.md"]["mimeType"] == "text/markdown"
        answer = await peer.request("resources/read", {"uri": "skill://try-a-client/references/CHECKS.md"})
    assert answer["result"]["contents"][0]["text"].startswith("# Checks\n")


async def test_the_checks_name_only_existing_tools_and_prompts() -> None:
    async with bench(STATELESS) as peer:
        known = {entry["name"] for what in ("tools", "prompts") for entry in await listed(peer, what)}
    text = "".join((FOLDER / name).read_text() for name in FILES)
    named = set(re.findall(r"`((?:test|elicit|trigger|show|long|all|result|large|structured)_\w+|json_\w+)`", text))
    assert named - known == set()
    assert len(named) > 20
