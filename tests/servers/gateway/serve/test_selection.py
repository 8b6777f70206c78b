"""Selection of the joined servers by a configuration or the command line."""

from pathlib import Path

import pytest

from servers.gateway.serve.configuration import read_configuration
from servers.gateway.serve.selection import JoinOptions
from shared.program.settings.options import LineValues, read_options


def joining(folder: Path, text: str, given: LineValues | None = None) -> JoinOptions:
    path = folder / "bundle.yaml"
    path.write_text(f"{text}\nservers: {{fetch: {{}}}}")
    return read_options(JoinOptions, given or {}, file=read_configuration(path).join_options)


SERVED, KNOWN = ["a", "b"], ["a", "b", "c"]


def test_join_selects_all_or_some_members(tmp_path: Path) -> None:
    members: dict[str, list[str]] = {
        "": [], "join: false": [], "join: true": ["a", "b"], "join: [c, b]": ["b"], "join: []": [],
    }  # fmt: skip
    assert {text: joining(tmp_path, text).members(SERVED, KNOWN) for text in members} == members


def test_the_command_line_overrides_join_and_prefix(tmp_path: Path) -> None:
    assert joining(tmp_path, "join: [a]", {"join": "1"}).members(SERVED, KNOWN) == ["a", "b"]
    assert joining(tmp_path, "join: true", {"join": "0"}).members(SERVED, KNOWN) == []
    assert joining(tmp_path, "prefix: always", {"prefix": "auto"}).prefix == "auto"


WRONG = [
    ("join: 5", "bundle.yaml: join: must be true or a list of server names"),
    ("join: fetch", "bundle.yaml: join: must be true or a list of server names"),
    ("join: [1]", "bundle.yaml: join: must be true or a list of server names"),
    ("prefix: never", "bundle.yaml: prefix: it must be 'auto' or 'always'"),
    ("joined: true", "there is no option 'joined'; did you mean 'join'?"),
]


def test_an_invalid_join_is_refused_in_one_line(tmp_path: Path) -> None:
    for text, reason in WRONG:
        with pytest.raises(ValueError, match=r"bundle\.yaml") as error:
            joining(tmp_path, text)
        assert reason in str(error.value)
    with pytest.raises(ValueError, match="join: there is no server 'd'; available: a, b, c"):
        joining(tmp_path, "join: [a, d]").members(SERVED, KNOWN)
    with pytest.raises(ValueError, match="a server's name must have 1 to 32 letters, digits and hyphens"):
        joining(tmp_path, "join: true").members(["a" * 33], ["a" * 33])
