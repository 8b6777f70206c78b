"""Mistakes that models make, and how the text of the error leads to the right call."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Arguments = dict[str, Any]
T = TypeVar("T")
Mend = Callable[[str], Arguments | tuple[str, Arguments]]


class Mistake(NamedTuple):
    """A wrong call."""

    name: str
    server: str
    tool: str
    arguments: Arguments
    mend: Callable[[str], tuple[str, Arguments]]
    """Returns the call that a reader of the error makes next. Raises LookupError where the error does not say it."""


def _part(pattern: str, text: str) -> str:
    """Return the part of the error that the group of `pattern` matches. Raises LookupError."""
    match = re.search(pattern, text)
    if match is None:
        raise LookupError(f"no {pattern!r} in {text!r}")
    return match[1]


def _then(words: str, text: str, following: T) -> T:
    """Return `following` where the error has `words`. Raises LookupError where it has not."""
    _part(f"({re.escape(words)})", text)
    return following


def make_files(folder: Path) -> None:
    """Make the files that the mistakes are about."""
    (folder / "src").mkdir(parents=True)
    (folder / "Readme.md").write_text("# Mills\nThe mill\n")
    (folder / "src" / "main.py").write_text("def work():\n    return 1\n")
    (folder / "pair.json").write_text('{\n"a": 1,\n"b": 1\n}\n')


def of_files(folder: Path) -> list[Mistake]:
    """Return those in the filesystem server, over `folder`."""

    def mistake(name: str, tool: str, arguments: Arguments, mend: Mend) -> Mistake:
        def next_call(text: str) -> tuple[str, Arguments]:
            mended = mend(text)
            return mended if isinstance(mended, tuple) else (tool, {**arguments, **mended})

        return Mistake(name, "filesystem", tool, arguments, next_call)

    def path(name: str) -> str:
        return str(folder / name)

    main, readme = path("src/main.py"), path("Readme.md")
    return [
        mistake("wrong case", "read_text_file", {"path": path("readme.md")},
                lambda text: {"path": _part(r"Did you mean (\S+)\?", text)}),
        mistake("misspelt name", "read_text_file", {"path": path("src/mian.py")},
                lambda text: {"path": path("src/" + _part(r"nearest names there: ([^,\s]+)\.", text))}),
        mistake("a directory as a file", "read_text_file", {"path": path("src")},
                lambda text: (_part(r"Use (\w+)", text), {"path": path("src")})),
        mistake("a path outside", "list_directory", {"path": "/etc"},
                lambda text: {"path": _part(r"beneath (\S+)\.$", text)}),
        mistake("a stale cursor", "list_directory", {"path": path("src"), "cursor": "abc"},
                lambda text: _then("Omit ", text, ("list_directory", {"path": path("src")}))),
        mistake("wrong argument name", "read_text_file", {"file_path": readme},
                lambda text: ("read_text_file", {_part(r"did you mean '(\w+)'", text): readme})),
        mistake("an unknown argument", "search_content", {"path": path("."), "regex": "work"},
                lambda text: ("search_content", {"path": path("."), _part(r"^(\w+): Field required", text): "work"})),
        mistake("arguments in another case", "edit_file",
                {"path": main, "edits": [{"old_text": "return 1", "new_text": "return 1 "}]},
                lambda text: {"edits": [{_part(r"'old_text'; did you mean '(\w+)'", text): "return 1",
                                         _part(r"'new_text'; did you mean '(\w+)'", text): "return 1"}]}),
        mistake("an old text that is not there", "edit_file",
                {"path": main, "edits": [{"oldText": "returns 1", "newText": "return 3"}]},
                lambda text: {"edits": [{"oldText": _part(r"is line 2: '([^']+)'", text), "newText": "return 1"}]}),
        mistake("an old text that is there twice", "edit_file",
                {"path": path("pair.json"), "edits": [{"oldText": "1", "newText": "2"}]},
                lambda text: {"edits": [{"oldText": "1", "newText": "2", _part(r"pass (count) to", text): 0}]}),
        mistake("a bad pattern", "search_content", {"path": path("."), "pattern": "work("},
                lambda text: {_part(r"set (literal) to", text): True}),
        mistake("a destination that exists", "copy_file", {"source": readme, "destination": main},
                lambda text: _then("Choose another name", text, {"destination": path("copy.md")})),
        mistake("a directory that is not there", "write_file", {"path": path("new/a.txt"), "content": "x"},
                lambda text: (_part(r"with (\w+) first", text), {"path": path("new")})),
        mistake("a wrong choice", "write_file", {"path": path("b.txt"), "content": "x", "mode": "new"},
                lambda text: {"mode": _part(r"'(create)'", text)}),
        mistake("an old etag", "write_file", {"path": path("pair.json"), "content": "{}\n", "if_match": "123"},
                lambda text: {"if_match": _part(r"etag is now (\w+)", text)}),
        mistake("lines past the end", "read_text_file", {"path": main, "offset": 900},
                lambda text: {"offset": int(_part(r"has (\d+) lines", text))}),
        mistake("text for a number", "read_text_file", {"path": main, "head": "five"},
                lambda text: _then("head: Input should be a valid integer", text, {"head": 5})),
        mistake("text for a list", "read_multiple_files", {"paths": readme},
                lambda text: _then("paths: Input should be a valid array", text, {"paths": [readme]})),
        mistake("deleting what is not empty", "delete_file", {"path": path("src")},
                lambda text: {_part(r"Pass (recursive): true", text): True}),
    ]  # fmt: skip


def of_tables() -> list[Mistake]:
    """Return those in the SQLite server, over the shop of the tasks."""

    def mistake(name: str, arguments: Arguments, mend: Callable[[str], tuple[str, Arguments]], tool: str) -> Mistake:
        return Mistake(name, "sqlite", tool, arguments, mend)

    def query(name: str, sql: str, mend: Callable[[str], Arguments]) -> Mistake:
        return mistake(name, {"query": sql}, lambda text: ("read_query", mend(text)), "read_query")

    names = "SELECT name FROM customers"
    by_id = f"{names} WHERE id = ?"
    visits = {"table_name": "visits", "csv": "a,b\n1,2\n1,2\n"}
    update = "UPDATE customers SET city = 'Ulm' WHERE id = 1"
    return [
        query("no such column", "SELECT nme FROM customers",
              lambda text: {"query": names.replace("name", _part(r"(?m)^(\w+) \(in customers\)", text))}),
        query("no such table", "SELECT name FROM customer",
              lambda text: {"query": f"SELECT name FROM {_part('(?m)^(customers)$', text)}"}),
        query("bad SQL", "SELEC name FROM customers",
              lambda text: _then('near "SELEC"', text, {"query": names})),
        query("two statements", f"{names}; {names}",
              lambda text: _then("more than one statement", text, {"query": names})),
        query("a missing parameter", by_id,
              lambda text: _then("uses 1, and there are 0", text, {"query": by_id, "parameters": [1]})),
        mistake("a change by the tool that reads", {"query": update},
                lambda text: (_part(r"Use (\w+)\.", text), {"query": update}), "read_query"),
        mistake("a table by another argument", {"name": "orders"},
                lambda text: ("describe_table", {_part(r"did you mean '(\w+)'", text): "orders"}), "describe_table"),
        mistake("a misspelt table", {"table_name": "order"},
                lambda text: ("describe_table", {"table_name": _part(r"(?m)^(orders)$", text)}), "describe_table"),
        mistake("a cursor of another query", {"query": names, "cursor": "zzz"},
                lambda text: _then("Omit ", text, ("read_query", {"query": names})), "read_query"),
        mistake("another database", {"query": names, "database": "other"},
                lambda text: ("read_query", {"query": names, "database": _part(r"Available: (\w+)\.", text)}),
                "read_query"),
        mistake("a row too long", {**visits, "csv": "a,b\n1,2\n1,2,3\n"},
                lambda text: _then("it has 3 fields, but there are 2 columns", text, ("import_csv", visits)),
                "import_csv"),
    ]  # fmt: skip
