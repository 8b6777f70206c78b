"""`__all__` as the list of public names: complete, sorted and correct in every public module of `shared`."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "shared").rglob("*.py")]
DOORS = ["shared/contracts.py", "shared/errors.py", "shared/names.py", "shared/testing.py"]
DOORS += sorted(path for path in MODULES if path.endswith("__init__.py"))


def _defined(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Returns the public functions, classes and constants at the top level of a module."""
    callables = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return callables, {name for name in names if not name.startswith("_")}


def _order(name: str) -> tuple[int, list[tuple[bool, int | str]]]:
    """CONSTANTS, then Classes, then functions; numbers by value. It is the order of ruff's RUF022."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, [(not part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", name)]


def _wrong(path: str) -> Iterator[str]:
    """Returns the faults of the names of one module."""
    module = importlib.import_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    callables, constants = _defined(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    names = list(getattr(module, "__all__", ()))
    if (callables or constants) and not hasattr(module, "__all__"):
        yield f"{path} has public names and no __all__"
    if names != sorted(set(names), key=_order):
        yield f"{path}: __all__ is not sorted, or names something twice"
    yield from (f"{path}: __all__ names what isn't there: {name}" for name in names if not hasattr(module, name))
    yield from (f"{path}: public and not in __all__: {name}" for name in sorted(callables - set(names)))


def test_dunder_all_is_complete_and_correct() -> None:
    assert not [problem for path in DOORS for problem in _wrong(path)]
    assert importlib.import_module("shared").__all__


def test_shared_client_connect_is_the_function_not_the_module() -> None:
    client, module = (importlib.import_module(name) for name in ("shared.client", "shared.client.connect"))
    assert "connect" in client.__all__
    assert client.connect is module.connect
