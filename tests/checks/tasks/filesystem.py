"""Tasks on files; the peer is the official server of npm."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.checks.tasks.session import Session
from tests.checks.tasks.task import Task

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def project(folder: Path) -> None:
    filler = "".join(f"    value_{n} = compute({n})\n" for n in range(40))
    files = {f"src/module{n}.py": f"def work{n}():\n{filler}    return value_1\n" for n in range(30)}
    for number in (3, 11, 27):
        files[f"src/module{number}.py"] += f"\n# We recieve {number} parts.\nold_name({number})\n"
    write(folder, files)


def _paths(listing: str) -> list[str]:
    return [line for line in listing.splitlines() if line.startswith("/")]


def fix_ours(session: Session, folder: Path) -> str:
    found = session.call("search_content", path=str(folder), pattern="recieve", output="files")
    paths = re.findall(r"\S+\.py", found)
    edits = [{"path": str(folder / path), "oldText": "recieve", "newText": "receive"} for path in paths]
    return session.call("edit_file", edits=edits)


def fix_theirs(session: Session, folder: Path) -> str:
    return _replace_theirs(session, folder, "recieve", "receive")


def _replace_theirs(session: Session, folder: Path, old: str, new: str) -> str:
    paths = _paths(session.call("search_files", path=str(folder), pattern="**/*.py"))
    texts = session.call("read_multiple_files", paths=paths).split("\n---\n")
    for path, text in zip(paths, texts, strict=True):
        if old in text:
            session.call("edit_file", path=path, edits=[{"oldText": old, "newText": new}])
    return ""


def rename_ours(session: Session, folder: Path) -> str:
    found = session.call("search_content", path=str(folder), pattern=r"\bold_name\b", output="files")
    edits = [
        {"path": str(folder / path), "oldText": "old_name", "newText": "new_name", "count": 0}
        for path in re.findall(r"\S+\.py", found)
    ]
    return session.call("edit_file", edits=edits)


def rename_theirs(session: Session, folder: Path) -> str:
    return _replace_theirs(session, folder, "old_name", "new_name")


def no_py_has(word: str) -> Callable[[Path, str], bool]:
    return lambda folder, _: not any(word in path.read_text() for path in folder.rglob("*.py"))


def count_ours(session: Session, folder: Path) -> str:
    found = session.call("search_content", path=str(folder), pattern="value_7 ", output="counts")
    return str(sum(map(int, re.findall(r"\.py: (\d+)", found))))


def count_theirs(session: Session, folder: Path) -> str:
    paths = _paths(session.call("search_files", path=str(folder), pattern="**/*.py"))
    return str(session.call("read_multiple_files", paths=paths).count("value_7 "))


def log(folder: Path) -> None:
    write(folder, {"app.log": "".join(f"line {n} of the log, with some words\n" for n in range(1, 5_001))})


def middle_theirs(session: Session, folder: Path) -> str:
    return "\n".join(session.call("read_text_file", path=str(folder / "app.log"), head=3_010).split("\n")[2_999:])


def append_theirs(session: Session, folder: Path) -> str:
    last = session.call("read_text_file", path=str(folder / "app.log"), tail=2).strip()
    edits = [{"oldText": last, "newText": f"{last}\nthe end"}]
    return session.call("edit_file", path=str(folder / "app.log"), edits=edits)


def two_folders(folder: Path) -> None:
    same = {f"{side}/same{n}.txt": f"text {n}\n" * 50 for side in "ab" for n in range(10)}
    write(folder, {**same, "a/other.txt": "long ago\n", "b/other.txt": "just now\n", "a/only.txt": "x\n"})


def _compare(session: Session, folder: Path, between: str) -> str:
    """The names of files that differ, where the texts of several have a line that matches `between` before each."""
    listed = [session.call("list_directory", path=str(folder / side)) for side in "ab"]
    names = [set(re.findall(r"\w+\.txt", text)) for text in listed]
    both = sorted(names[0] & names[1])
    paths = [str(folder / side / name) for side in "ab" for name in both]
    texts = re.split(between, session.call("read_multiple_files", paths=paths))[-len(paths) :]
    pairs = zip(both, texts[: len(both)], texts[len(both) :], strict=True)
    return " ".join([name for name, a, b in pairs if a.strip() != b.strip()] + sorted(names[0] ^ names[1]))


def compare_ours(session: Session, folder: Path) -> str:
    return _compare(session, folder, r"(?m)^.*/\w+\.txt\b.*$")


def compare_theirs(session: Session, folder: Path) -> str:
    return _compare(session, folder, r"(?m)^(?:---\n)?/.*:$")


def temporary(folder: Path) -> None:
    write(folder, {**{f"deep/{n}/draft{n}.tmp": "x" for n in range(4)}, "deep/keep.txt": "x"})


def gather(session: Session, folder: Path) -> str:
    pattern = "**/*.tmp"
    found = session.call("search_files", path=str(folder), pattern=pattern)
    names = re.findall(r"\S+\.tmp", found)
    session.call("create_directory", path=str(folder / "old"))
    for name in names:
        source = folder / name
        session.call("move_file", source=str(source), destination=str(folder / "old" / source.name))
    return ""


def copy_theirs(session: Session, folder: Path) -> str:
    paths = _paths(session.call("search_files", path=str(folder / "template"), pattern="**/*.txt"))
    texts = session.call("read_multiple_files", paths=paths).split("\n---\n")
    session.call("create_directory", path=str(folder / "new"))
    for path, text in zip(paths, texts, strict=True):
        target = folder / "new" / Path(path).name
        session.call("write_file", path=str(target), content=text.split("\n", 1)[1].rstrip("\n") + "\n")
    return ""


def settings(folder: Path) -> None:
    write(folder, {"settings.json": json.dumps({f"key{n}": n for n in range(100)}, indent=2) + "\n"})


def set_ours(session: Session, folder: Path) -> str:
    edits = [{"oldText": '"key42": 42,', "newText": '"key42": "new",'}]
    return session.call("edit_file", path=str(folder / "settings.json"), edits=edits)


def undo_ours(session: Session, folder: Path) -> str:
    set_ours(session, folder)
    return session.call("undo")


def undo_theirs(session: Session, folder: Path) -> str:
    set_ours(session, folder)
    edits = [{"oldText": '"key42": "new",', "newText": '"key42": 42,'}]
    return session.call("edit_file", path=str(folder / "settings.json"), edits=edits)


def restored(folder: Path, _: str) -> bool:
    return bool(json.loads((folder / "settings.json").read_text())["key42"] == 42)


def biggest_ours(session: Session, folder: Path) -> str:
    arguments = {"path": str(folder), "sortBy": "size", "limit": 1}
    return session.call("list_directory_with_sizes", **arguments)


def biggest_theirs(session: Session, folder: Path) -> str:
    return session.call("list_directory_with_sizes", path=str(folder), sortBy="size").splitlines()[0]


def sized(folder: Path) -> None:
    write(folder, {f"file{n}.bin": "x" * (n * 37 % 101) for n in range(100)})


def modules(folder: Path) -> None:
    write(folder, {"main.js": "x", **{f"node_modules/p{n}/index.js": "x" for n in range(50)}})


TASKS = (
    Task("find a misspelling and mend it", project, fix_ours, fix_theirs, no_py_has("recieve")),
    Task("rename a function across files", project, rename_ours, rename_theirs, no_py_has("old_name")),
    Task("count a name in a project", project, count_ours, count_theirs, lambda _, text: text == "30"),
    Task(
        "read the end of a log", log,
        lambda session, folder: session.call("read_text_file", path=str(folder / "app.log"), tail=20),
        # It counts what comes after the last line end as a line.
        lambda session, folder: session.call("read_text_file", path=str(folder / "app.log"), tail=21),
        lambda _, text: "line 5000 " in text and "line 4981 " in text and "line 4980 " not in text,
    ),
    Task(
        "read lines from the middle of a log", log,
        lambda session, folder: session.call("read_text_file", path=str(folder / "app.log"), offset=3_000, head=11),
        middle_theirs,
        lambda _, text: text.startswith("line 3000 ") and "line 3010 " in text,
    ),
    Task(
        "append a line to a log", log,
        lambda session, folder: session.call(
            "write_file", path=str(folder / "app.log"), content="the end\n", mode="append"
        ),
        append_theirs,
        lambda folder, _: (folder / "app.log").read_text().endswith("some words\nthe end\n"),
    ),
    Task("compare two folders", two_folders, compare_ours, compare_theirs,
         lambda _, text: text == "other.txt only.txt"),
    Task("move scattered files into a folder", temporary, gather, gather,
         lambda folder, _: len(list((folder / "old").glob("*.tmp"))) == 4),
    Task(
        "copy a template", lambda folder: write(folder, {f"template/{n}.txt": f"{n}\n" for n in range(5)}),
        lambda session, folder: session.call(
            "copy_file", source=str(folder / "template"), destination=str(folder / "new")
        ),
        copy_theirs,
        lambda folder, _: [path.read_text() for path in sorted((folder / "new").iterdir())]
        == [f"{n}\n" for n in range(5)],
    ),
    Task(
        "delete a folder", lambda folder: write(folder, {"build/a/b.txt": "x", "keep.txt": "x"}),
        lambda session, folder: session.call("delete_file", path=str(folder / "build"), recursive=True), None,
        lambda folder, _: [path.name for path in folder.iterdir()] == ["keep.txt"],
    ),
    Task("set a value in a file of settings", settings, set_ours, set_ours,
         lambda folder, _: json.loads((folder / "settings.json").read_text())["key42"] == "new"),
    Task("take an edit back", settings, undo_ours, undo_theirs, restored),
    Task("find the largest file", sized, biggest_ours, biggest_theirs, lambda _, text: "file30.bin" in text),
    Task(
        "see a project without what others wrote", modules,
        lambda session, folder: session.call("directory_tree", path=str(folder), excludePatterns=["node_modules"]),
        lambda session, folder: session.call("directory_tree", path=str(folder), excludePatterns=["node_modules"]),
        lambda _, text: "main.js" in text and "p7" not in text,
    ),
    Task(
        "look at a picture", lambda folder: (folder / "dot.png").write_bytes(PIXEL),
        lambda session, folder: session.call("read_media_file", path=str(folder / "dot.png")),
        lambda session, folder: session.call("read_media_file", path=str(folder / "dot.png")),
        lambda _, text: text == "[image]",
    ),
    Task(
        "write a new file", lambda _: None,
        lambda session, folder: session.call("write_file", path=str(folder / "a.md"), content="# A\n"),
        lambda session, folder: session.call("write_file", path=str(folder / "a.md"), content="# A\n"),
        lambda folder, _: (folder / "a.md").read_text() == "# A\n",
    ),
)  # fmt: skip
