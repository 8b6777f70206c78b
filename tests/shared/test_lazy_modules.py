"""Lazy modules are executed at the first use, once, and are then like any other."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from types import ModuleType

import pytest

from shared.lazy_modules import LazyFinder, preset_attribute

CODE = '"""Doc."""\nimport late_log\nlate_log.executed.append(1)\nclass Thing: ...\n'


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One entry for each execution of `lazy_subject`, a lazy module."""
    (tmp_path / "lazy_subject.py").write_text(CODE)
    (tmp_path / "late_log.py").write_text("executed = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [LazyFinder(("lazy_subject",)), *sys.meta_path])
    before = set(sys.modules)
    yield importlib.import_module("late_log").executed
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _subject() -> ModuleType:
    return importlib.import_module("lazy_subject")


def test_importing_executes_nothing(executed: list[int]) -> None:
    first, second = _subject(), _subject()
    assert first is second is sys.modules["lazy_subject"]
    assert (first.__name__, Path(str(first.__file__)).name) == ("lazy_subject", "lazy_subject.py")
    assert not executed
    assert inspect.getsource(first) == CODE


def test_the_first_use_executes_it_once(executed: list[int]) -> None:
    module = _subject()
    assert isinstance(module.Thing(), module.Thing)
    assert module.__doc__ == "Doc."
    assert module is _subject()
    assert type(module) is ModuleType
    assert executed == [1]
    with pytest.raises(AttributeError, match="module 'lazy_subject' has no attribute 'other'"):
        _ = module.other


def test_from_import_and_dir_are_uses(executed: list[int]) -> None:
    assert "Thing" in dir(_subject())
    space: dict[str, object] = {}
    exec("from lazy_subject import Thing", space)
    assert space["Thing"] is _subject().Thing
    with pytest.raises(ImportError, match="cannot import name 'other'"):
        exec("from lazy_subject import other")
    assert executed == [1]


def test_an_error_of_its_code_is_raised_at_each_use(executed: list[int], tmp_path: Path) -> None:
    (tmp_path / "lazy_subject.py").write_text(f"{CODE}import lazy_missing\n")
    module = _subject()
    for count in (1, 2):
        with pytest.raises(ModuleNotFoundError, match="lazy_missing"):
            _ = module.other
        assert len(executed) == count


def test_threads_wait_until_it_is_executed(executed: list[int], tmp_path: Path) -> None:
    (tmp_path / "lazy_subject.py").write_text(f"{CODE}import threading, lazy_subject\nlast = lazy_subject.Thing\n")
    module, start, seen = _subject(), Barrier(8), []

    def use() -> None:
        start.wait()
        seen.append(module.last)

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [module.Thing] * 8
    assert executed == [1]


@pytest.mark.parametrize("used", [True, False])
def test_a_reload_executes_it_at_once(executed: list[int], used: bool) -> None:
    module = _subject()
    assert not used or module.Thing
    assert importlib.reload(module) is module
    assert {"Thing", "late_log"} <= {*dir(module)}
    assert len(executed) == 1 + used


def test_a_preset_attribute_is_there_for_a_while(executed: list[int]) -> None:
    with preset_attribute("lazy_subject", "Thing", int):
        assert _subject().Thing is int
    assert not executed
    assert _subject().Thing is not int
    with preset_attribute("lazy_subject", "Thing", int):
        assert _subject().Thing is not int


def test_a_preset_attribute_gives_way_to_the_code(executed: list[int]) -> None:
    with preset_attribute("lazy_subject", "Thing", int):
        assert dir(_subject())
    assert _subject().Thing is not int
    assert executed == [1]


def test_the_modules_of_a_package_are_lazy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finder = LazyFinder((), ("late_package",))
    (tmp_path / "late_package").mkdir()
    (tmp_path / "late_package" / "part.py").touch()
    found = finder.find_spec("late_package.part", [str(tmp_path / "late_package")])
    assert found is not None
    assert finder.find_spec("late_package", [str(tmp_path)]) is None


@pytest.mark.parametrize("name", ["lazy_missing", "sys", "late_package"])
def test_other_modules_are_found_as_ever(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "late_package").mkdir()
    assert LazyFinder((name,)).find_spec(name) is None
