"""The commands for CI: their output and exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from servers.prompts.__main__ import HELP
from servers.prompts.cli import golden
from servers.prompts.cli.parser import run as main
from servers.prompts.library.libraries import STARTER
from servers.prompts.library.library import Library
from tests import disk
from tests.servers.prompts.folders import OURS, SIMPLE, asking, front, texts, write
from tests.servers.prompts.test_starter import NAMES

HELLO = asking("Hello {{ who }}!", "who")
EXAMPLE = golden.format_golden(golden.Golden({"who": "Ann"}, [{"role": "user", "text": "Hello Ann!"}]))


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; returns its exit code and output."""

    def call(*arguments: object) -> tuple[int, str]:
        code = main([str(one) for one in arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


def test_lint_of_a_clean_library_prints_its_size_with_exit_code_0(run: Run) -> None:
    code, out = run("lint", STARTER)
    assert code == 0
    assert out.startswith("10 prompts, ")
    assert out.endswith(" tokens (an estimate: bytes / 4): 0 findings\n")


def test_lint_prints_findings_with_exit_code_1(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": front(OURS, body="{{ x }}")})
    path, reason = f"{tmp_path}/a.md", "the template uses 'x', which is not an argument"
    code, out = run("lint", tmp_path)
    assert code == 1
    assert f"{path}:5: {reason}\n" in out
    code, out = run("lint", "--json", tmp_path)
    assert code == 1
    assert json.loads(out) == {
        "problems": [{"path": path, "line": 5, "reason": reason}],
        "prompts": [{"name": "a", "path": path, "bytes": 81, "tokens_estimate": 21}],
    }


BAD_USAGE = [
    (["lint"], "required: DIR"),
    (["lint", "{}/no"], "is not a directory"),
    (["lint", "{}/empty"], "there is no prompt in"),
    (["lint", "--no", "{}"], "unrecognized arguments: --no"),
    (["render", "{}", "no"], "there is no prompt 'no'"),
    (["render", "{}", "hello"], "needs: 'who'"),
    (["render", "{}", "hello", "whom=Ann"], "'whom' is not an argument of this prompt"),
    (["render", "{}", "hello", "who"], "'who' is not KEY=VALUE"),
    (["render", "{}", "hello", "who=a", "who=b"], "'who' is given twice"),
    (["export", "{}", "--to", "{}/out"], "specify a prompt, or --all"),
    (["export", "{}", "no", "--to", "{}/out"], "there is no prompt 'no'"),
    (["export", "{}", "hello"], "required: --to"),
    (["export", "{}", "hello", "--to", "{}/hello.md"], "is not a directory"),
]


def test_wrong_usage_gives_exit_code_2_and_help_0(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"hello.md": HELLO.replace("name: who", "name: who\n    required: true")})
    (tmp_path / "empty").mkdir()
    for arguments, reason in BAD_USAGE:
        code, out = run(*(one.format(tmp_path) for one in arguments))
        assert (code, reason in out, out.count("\n")) == (2, True, 1), arguments
    assert run("lint", "--help")[0] == 0


def test_render_prints_each_message_after_its_role(run: Run, tmp_path: Path) -> None:
    lines = ("arguments:", "  - name: who", "messages:", "  - role: assistant", "    text: Yes?", "  - image: a.png")
    write(tmp_path, {"a.md": front(*lines, body="I am {{ who }}."), "a.png": b"1234"})
    code, out = run("render", tmp_path, "a", "who=x=y")
    assert code == 0
    assert out == "[assistant]\nYes?\n\n[user]\n(image a.png: image/png, 4 bytes)\n\n[user]\nI am x=y.\n"


def test_render_of_a_broken_prompt_gives_exit_code_1(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": front(OURS, body="Say\n{% no %}")})
    assert run("render", tmp_path, "a") == (1, f"{tmp_path}/a.md:6: Encountered unknown tag 'no'.\n")


def test_test_prints_differences_from_examples_and_updates_them(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": HELLO, "a.golden.yaml": EXAMPLE, "b.md": SIMPLE})
    assert run("test", tmp_path, STARTER) == (0, "11 passed, 0 failed, 1 without an example\n")
    write(tmp_path, {"a.md": HELLO.replace("Hello", "Bye")})
    code, out = run("test", tmp_path)
    assert code == 1
    assert f"{tmp_path}/a.golden.yaml: the output differs\n--- expected\n+++ now\n" in out
    assert "\n-  text: Hello Ann!\n+  text: Bye Ann!\n0 passed, 1 failed" in out
    assert run("test", "--update", tmp_path)[0] == 0
    assert (tmp_path / "a.golden.yaml").read_text() == EXAMPLE.replace("Hello", "Bye")
    assert run("test", tmp_path) == (0, "1 passed, 0 failed, 1 without an example\n")


FAILING = [
    ({"a.md": HELLO + "{% no %}", "a.golden.yaml": EXAMPLE}, "a.md:6: Encountered unknown tag"),
    ({"a.md": SIMPLE, "a.golden.yaml": EXAMPLE}, "a.md: 'who' is not an argument of this prompt"),
    ({"a.md": HELLO, "a.golden.yaml": "messages: []\n"}, "a.golden.yaml has no arguments"),
    ({"a.md": ""}, "a.md:1: it has no text"),
]


def test_test_fails_for_broken_or_unreadable_files(run: Run, tmp_path: Path) -> None:
    for number, (files, reason) in enumerate(FAILING):
        write(tmp_path / str(number), files)
        code, out = run("test", "--update", tmp_path / str(number))
        assert (code, reason in out) == (1, True), reason
    write(tmp_path, {"lib/a.md": HELLO, "example.yaml": EXAMPLE})
    (tmp_path / "lib/a.golden.yaml").symlink_to(tmp_path / "example.yaml")
    code, out = run("test", tmp_path / "lib")
    assert (code, "there is no file 'a.golden.yaml', or it can't be read" in out) == (1, True)


def test_exported_skills_are_read_back(run: Run, tmp_path: Path) -> None:
    code, out = run("export", STARTER, "--all", "--to", tmp_path / "new/skills")
    assert code == 0
    assert out.endswith("10 skills written, 0 unchanged\n")
    found = Library(tmp_path / "new/skills")
    found.scan()
    assert (found.names, found.check()) == (NAMES, [])
    assert sorted(one.name for one in (tmp_path / "new/skills").iterdir()) == NAMES
    again = run("export", STARTER, "--all", "--to", tmp_path / "new/skills")
    assert again == (0, "0 skills written, 10 unchanged\n")


SKILL = "---\nname: pdf\nlicense: MIT\ndescription: Handles PDF.\n---\nRun it."


def test_export_writes_a_skill_with_all_its_files(run: Run, tmp_path: Path) -> None:
    files = {"SKILL.md": SKILL, "refs/forms.md": "Forms.", "scripts/run.sh": "true", "a b.bin": "x"}
    write(tmp_path / "lib/old", files)
    write(tmp_path / "lib/old", {".env": "secret"})
    (tmp_path / "lib/old/scripts/run.sh").chmod(0o755)
    assert run("export", tmp_path / "lib", "pdf", "--to", tmp_path / "out")[0] == 0
    out = tmp_path / "out/pdf"
    assert {str(one.relative_to(out)): one.read_text() for one in out.rglob("*") if one.is_file()} == files
    assert os.access(out / "scripts/run.sh", os.X_OK)
    assert not os.access(out / "a b.bin", os.X_OK)


COMMANDS = [("lint",), ("test",), ("export", "--all", "--to", "out"), ("render", "hello")]


def test_pipes_do_not_block_any_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"lib/hello.md": HELLO, "lib/pdf/SKILL.md": SKILL})
    for name in ("lib/pipe.md", "lib/hello.golden.yaml", "lib/pdf/forms.md", "pipe"):
        os.mkfifo(tmp_path / name)
    results = {command: run(command, "lib", *more) for command, *more in COMMANDS}
    assert {command: code for command, (code, _) in results.items()} == {
        "lint": 1,
        "test": 1,
        "export": 1,
        "render": 0,
    }
    for name in ("pipe.md", "pdf/forms.md"):
        assert f"{name}: it is not a file, but a pipe, a socket or a device" in results["lint"][1]
    for command, *more in COMMANDS:
        code, out = run(command, "pipe", *more)
        assert (code, "is not a directory" in out) == (2, True)


REFUSED: list[tuple[dict[str, str], str, str]] = [
    ({"pdf/SKILL.md": "---\ndescription: d\n---\nText."}, "", "pdf/SKILL.md:1: the front matter has no name"),
    ({"a.md": SIMPLE, "B.md": SIMPLE}, "", "B.md: a skill can't be called 'B'"),
    ({"SKILL.md": SKILL}, "forms.md", "'forms.md' is a link"),
    ({"pdf/SKILL.md": SKILL}, "pdf/forms.md", "'forms.md' is a link"),
]


def test_export_writes_nothing_if_a_prompt_cannot_be_a_complete_skill(run: Run, tmp_path: Path) -> None:
    for number, (files, link, reason) in enumerate(REFUSED):
        write(tmp_path / str(number), files)
        if link:
            (tmp_path / str(number) / link).symlink_to("SKILL.md")
        code, out = run("export", tmp_path / str(number), "--all", "--to", tmp_path / "out")
        assert (code, reason in out) == (1, True), out
    assert not (tmp_path / "out").exists()


def test_export_replaces_different_files_only_with_force(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a", {"hello.md": HELLO, "bye.md": SIMPLE})
    write(tmp_path / "out/hello", {"SKILL.md": "mine", "more.txt": "x"})
    code, out = run("export", tmp_path / "a", "--all", "--to", tmp_path / "out")
    assert code == 1
    assert out == f"{tmp_path}/out/hello/SKILL.md: a different file already exists (--force replaces it)\n"
    assert not (tmp_path / "out/bye").exists()
    assert run("export", tmp_path / "a", "--all", "--force", "--to", tmp_path / "out")[0] == 0
    found = Library(tmp_path / "out")
    found.scan()
    assert texts(found, "hello")[0].endswith("Hello [who]!")
    assert (tmp_path / "out/hello/more.txt").read_text() == "x"


def test_an_exported_skill_is_synced_and_its_manifest_replaced_last(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "lib", {"SKILL.md": SKILL, "a.sh": "true", "z": "z"})
    (tmp_path / "lib/a.sh").chmod(0o755)
    write(tmp_path / "out/pdf", {"SKILL.md": "old", "z": "old"})
    synced = disk.synced(monkeypatch)
    run("export", tmp_path / "lib", "pdf", "--to", tmp_path / "new")
    assert synced[-2:] == [["SKILL.md", "a.sh", "z"], ["pdf"]]
    assert sorted(one for one in synced if isinstance(one, int)) == sorted([len("true"), len("z"), len(SKILL)])
    synced.clear()
    code, out = run("export", tmp_path / "lib", "pdf", "--force", "--to", tmp_path / "out")
    assert (code, out) == (0, f"{tmp_path}/out/pdf\n1 skill written, 0 unchanged\n")
    assert [one for one in synced if isinstance(one, int)] == [len("true"), len("z"), len(SKILL)]
    assert [os.access(tmp_path / "out/pdf" / name, os.X_OK) for name in ("a.sh", "z")] == [True, False]


def test_export_follows_no_links(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"a/hello.md": HELLO, "elsewhere/SKILL.md": "mine"})
    (tmp_path / "out").mkdir()
    (tmp_path / "out/hello").symlink_to(tmp_path / "elsewhere")
    assert run("export", tmp_path / "a", "hello", "--force", "--to", tmp_path / "out")[0] == 1
    assert (tmp_path / "elsewhere/SKILL.md").read_text() == "mine"


@pytest.mark.parametrize(("fails", "named"), [("os.rename", "'hello'"), ("os.fsync", "'hello/SKILL.md'")])
def test_a_failed_export_names_the_file_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, named: str
) -> None:
    write(tmp_path, {"a/hello.md": HELLO})
    monkeypatch.setattr(fails, _full)
    code, out = run("export", tmp_path / "a", "hello", "--to", tmp_path / "out")
    assert (code, list((tmp_path / "out").iterdir())) == (1, [])
    assert f"{named}: No space left on device" in out


def _full(*_: object, **__: object) -> None:
    raise OSError(28, "no space")


def test_the_server_program_runs_the_commands(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": SIMPLE})
    command = [sys.executable, "-m", "servers.prompts", "render", str(tmp_path), "a"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[user]\nSay it.\n"


@pytest.mark.slow
def test_unencodable_characters_are_printed_as_escapes(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": front(body="Größe")})
    command = [sys.executable, "-m", "servers.prompts", "render", str(tmp_path), "a"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[user]\nGr\\xf6\\xdfe\n"


@pytest.mark.slow
def test_a_closed_pipe_ends_a_command_silently(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": SIMPLE})
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "wb") as pipe:
        command = [sys.executable, "-m", "servers.prompts", "lint", str(tmp_path)]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.slow
def test_the_help_of_the_server_names_the_commands() -> None:
    command = [sys.executable, "-m", "servers.prompts", "--help"]
    shown = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert shown.endswith(HELP)


def test_export_as_writes_commands_of_a_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = tmp_path / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "fix.md").write_text("---\ndescription: Fix it.\nmodel: opus\n---\nFix $ARGUMENTS.\n")
    target = tmp_path / "out"
    words = ["export", str(commands), "--all", "--as", "gemini", "--to", str(target)]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{target / 'fix.toml'}: without model\n1 command written, 0 unchanged\n"
    assert (target / "fix.toml").read_text() == 'description = "Fix it."\nprompt = """\nFix {{args}}.\n"""\n'
    assert main(words) == 0
    assert capsys.readouterr().out == "0 commands written, 1 unchanged\n"
    (target / "fix.toml").write_text("other")
    assert main(words) == 1
    assert "a different file already exists" in capsys.readouterr().out
    assert main([*words, "--force"]) == 0
    (commands / "two.md").write_text("Fix $0 on $1.")
    (target / "fix.toml").unlink()
    assert main(words) == 1
    output = capsys.readouterr().out
    assert "commands of Gemini CLI take one argument, {{args}}, but it needs 'arg0', 'arg1'" in output
    assert "1 of 2 prompts can't be written as Gemini CLI commands: name the others to write those" in output
    assert not (target / "fix.toml").exists()


@pytest.mark.parametrize("host", ["claude", "codex", "gemini", "opencode", "vscode"])
def test_starter_prompts_of_one_message_become_commands(host: str, run: Run, tmp_path: Path) -> None:
    names = [path.stem for path in STARTER.glob("*.md") if path.stem != "sql-from-question"]
    code, out = run("export", STARTER, *names, "--as", host, "--to", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "9 commands written, 0 unchanged")


def test_a_command_from_a_skill_or_agent_lists_lost_files_and_tools(run: Run, tmp_path: Path) -> None:
    agent = "---\nname: tester\ndescription: Tests.\ntools: Read\n---\nTest it."
    files = {"pdf/SKILL.md": SKILL, "pdf/a.md": "A", "pdf/b.md": "B", ".claude/agents/tester.md": agent}
    write(tmp_path / "lib", files)
    code, out = run("export", tmp_path / "lib", "pdf", "agents-tester", "--as", "codex", "--to", tmp_path / "out")
    assert code == 0
    assert out.splitlines()[:2] == [
        f"{tmp_path / 'out/pdf.md'}: without name, license, a.md and 1 more file of the skill",
        f"{tmp_path / 'out/agents-tester.md'}: without name, tools",
    ]
    assert (tmp_path / "out/agents-tester.md").read_text() == "---\ndescription: Tests.\n---\nTest it."
