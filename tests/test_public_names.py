"""`__all__` is the one list of public names: complete, sorted and true in every module of `shared`."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "shared").rglob("*.py"))


def _defined(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The public functions and classes at the top of a module, and its public constants."""
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


@pytest.mark.parametrize("path", FILES)
def test_all_is_complete(path: str) -> None:
    module = importlib.import_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    callables, constants = _defined(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    if not (callables or constants or hasattr(module, "__all__")):
        return
    assert hasattr(module, "__all__"), f"{path} has public names and no __all__"
    names = list(module.__all__)
    assert names == sorted(names, key=_order), f"{path}: __all__ is not sorted"
    assert len(names) == len(set(names)), f"{path}: __all__ names something twice"
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing, f"{path}: __all__ names what isn't there: {missing}"
    unlisted = sorted(callables - set(names))
    assert not unlisted, f"{path}: public and not in __all__: {unlisted}"


def test_the_package_lists_its_names() -> None:
    assert importlib.import_module("shared").__all__


def test_the_client_gives_the_function_and_not_the_module_of_that_name() -> None:
    client, module = (importlib.import_module(name) for name in ("shared.client", "shared.client.connect"))
    assert "connect" in client.__all__
    assert client.connect is module.connect


def test_the_order_is_that_of_the_linter() -> None:
    names = ["find_version", "Version", "ask", "V10", "NEWEST", "V2"]
    assert sorted(names, key=_order) == ["NEWEST", "V2", "V10", "Version", "ask", "find_version"]
