"""The rules of `architecture.py`: applied to the tree, and each to a snippet that breaks it."""

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests import architecture as rules
from tests.architecture import RULES, SOURCES, Findings, Source
from tests.imports import drawing


@pytest.fixture(autouse=True, scope="module")
def no_search_for_garbage() -> Iterator[None]:
    """Turns garbage collection off: syntax trees are many small objects, none of which is garbage."""
    gc.disable()
    yield
    gc.enable()


def test_the_source_follows_the_rules() -> None:
    found = []
    for source in SOURCES.values():
        for rule in RULES:
            found += [f"{source.path}:{line}: {rule.__name__}: {text}" for line, text in rule(source)]
        source.forget()
    assert not found, "\n" + "\n".join(found)


def _cycle(sources: Iterable[Source]) -> list[str]:
    graph: dict[str, set[str]] = {}
    for source in sources:
        used = {one.target for one in source.imports if not one.late and not one.typing_only}
        graph[source.module] = {target for target in used - {source.module} if target.startswith("shared")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_shared_has_no_import_cycle() -> None:
    cycle = _cycle(source for source in SOURCES.values() if source.path.startswith("shared/"))
    assert not cycle, " -> ".join(cycle)
    one = Source("shared/one.py", "from shared.two import x")
    assert _cycle([one, Source("shared/two.py", "import shared.one")])
    assert not _cycle([one, Source("shared/two.py", "def f() -> None:\n    import shared.one")])
    assert not _cycle([one, Source("shared/two.py", "if TYPE_CHECKING:\n    import shared.one")])


def test_folders_have_no_import_cycles() -> None:
    assert rules.circles(SOURCES.values()) == {folder: set(known) for folder, known in rules.CIRCLES.items()}
    one = Source("shared/a/one.py", "import shared.a.two.x")
    for way in ("import shared.a.one", "if TYPE_CHECKING:\n    import shared.a.one"):
        assert rules.circles([one, Source("shared/a/two/y.py", way)]) == {"shared/a": {("one", "two")}}
    assert not rules.circles([one, Source("shared/a/two/y.py", "import shared.b.one")])


def test_contributing_shows_the_current_import_graph() -> None:
    assert drawing() in (rules.ROOT / "CONTRIBUTING.md").read_text(), "`python -m tests.imports` prints the drawing"


def _upwards() -> list[str]:
    return [path for path, _ in rules.UPWARDS]


def test_exceptions_are_few_and_needed() -> None:
    assert sum(map(len, rules.BROAD_EXCEPTS.values())) <= 6
    needs: dict[str, tuple[Iterable[str], Callable[[Source], object]]] = {
        "late imports": (rules.LATE_IMPORTS, lambda one: any(i.late for i in one.imports)),
        "descriptors": (rules.KNOW_DESCRIPTORS, lambda one: [*rules.uses_of_descriptors(one)]),
        "imports upwards": (_upwards(), lambda one: any((one.path, i.target) in rules.UPWARDS for i in one.imports)),
        "logging": (rules.LOGGING_PROTOCOL, lambda one: any(i.target == "logging" for i in one.imports)),
        "private names": (rules.USE_PRIVATE_NAMES, lambda one: "._" in one.text),
        "broad excepts": (rules.BROAD_EXCEPTS, rules.broad_excepts),
    }
    idle = [
        f"{path}: {what}"
        for what, (paths, need) in needs.items()
        for path in paths
        if path in SOURCES and not need(SOURCES[path])
    ]
    assert not idle, "nothing needs these exceptions any more"


# Only lines that end in `#!` are violations.
SNIPPETS: list[tuple[Callable[[Source], Findings], str, str]] = [
    (rules.protocol_is_pure, "shared/protocol/x.py", "import json\nfrom os.path import join  #!"),
    (rules.protocol_is_pure, "shared/protocol/x.py", "def f(): ...\nasync def g(): ...  #!"),
    (rules.protocol_is_pure, "shared/protocol/x.py", "x = [y for y in z]\nx = [y async for y in z]  #!"),
    (rules.imports_go_down_the_ladder, "shared/protocol/x.py", "import shared.errors\nimport shared.server.app  #!"),
    (rules.imports_go_down_the_ladder, "shared/server/x.py", "import shared.contracts\nimport shared.client.x  #!"),
    (rules.imports_go_down_the_ladder, "shared/server/x.py", "from ..auth import a\nfrom ..telemetry import b  #!"),
    (rules.imports_go_down_the_ladder, "shared/telemetry/x.py", "import shared.auth\nimport shared.transports  #!"),
    (
        rules.imports_go_down_the_ladder,
        "shared/__init__.py",
        "import shared.server.app\nimport shared.program.run  #!",
    ),
    (rules.imports_go_down_the_ladder, "shared/helpers.py", "x = 1  #!"),
    (rules.imports_go_down_the_ladder, "shared/text.py", "import shared.yaml\nimport shared.errors  #!"),
    (
        rules.imports_go_down_the_ladder,
        "shared/auth/x.py",
        "if TYPE_CHECKING:\n    import shared.errors\n    import shared.server.app  #!",
    ),
    (rules.shared_knows_no_server, "shared/program/run.py", "import json\nimport servers.filesystem  #!"),
    (rules.servers_go_down_their_ladder, "servers/common/x.py", "import servers.common.y\nimport servers.a  #!"),
    (rules.servers_go_down_their_ladder, "servers/gateway/x.py", "import servers.common.y\nimport servers.a  #!"),
    (rules.servers_go_down_their_ladder, "servers/gateway/x.py", "from ..bundle import y  #!\nfrom .y import z"),
    (rules.servers_go_down_their_ladder, "servers/bundle/x.py", "import servers.a\nimport servers.__main__  #!"),
    (
        rules.imports_inside_a_server_are_relative,
        "servers/a/b/c.py",
        "from . import d\nfrom servers.common import x\nfrom servers.a.b import d  #!",
    ),
    (rules.servers_stand_alone, "servers/a/server.py", "import shared, servers.a.x\nimport servers.b  #!"),
    (rules.servers_stand_alone, "servers/a/paths.py", "import pathlib\nfrom shared import ToolError  #!"),
    (rules.servers_stand_alone, "servers/a/features/paths.py", "import shared\nimport servers.b  #!"),
    (rules.servers_stand_alone, "servers/__main__.py", "import shared, servers.a.x"),
    (rules.servers_stand_alone, "servers/bundle/hosts/x.py", "import shared, servers.catalog"),
    (rules.servers_stand_alone, "servers/a/server.py", "import shared\nimport servers.bundle.hosts.x  #!"),
    (rules.servers_stand_alone, "servers/a/paths.py", "import shared.text\nimport shared.server.app  #!"),
    (rules.servers_stand_alone, "servers/a/server.py", "import servers.start, servers.common.web.pages"),
    (
        rules.servers_stand_alone,
        "servers/common/web/x.py",
        "import servers.common.web.y\nimport servers.a  #!\nimport shared  #!",
    ),
    (rules.servers_stand_alone, "servers/a/features/x.py", "import shared.server.app\nimport servers.b  #!"),
    (rules.no_sdk, "servers/a/server.py", "import mcp_notes\nfrom mcp.types import Tool  #!"),
    (rules.dates_live_in_versions, "shared/program/run.py", "'2025-11-25'\nnewest = '2025-11-25'  #!"),
    (rules.dates_live_in_versions, "shared/protocol/versions.py", "newest = '2025-11-25'"),
    (rules.only_protocol_reads_the_version, "shared/server/x.py", "app.version\nself._peer.version  #!"),
    (rules.only_protocol_reads_the_version, "shared/protocol/x.py", "self._peer.version"),
    (
        rules.only_the_codec_decodes,
        "shared/x.py",
        "from .protocol.wire.codec import Codec, encode\nfrom .protocol.wire.codec import decode  #!",
    ),
    (
        rules.only_the_codec_decodes,
        "servers/a/x.py",
        "from shared.protocol.wire import codec\nx = codec.decode(y)  #!",
    ),
    (rules.only_the_codec_decodes, "shared/protocol/wire/codec.py", "from .codec import decode"),
    (rules.imports_stand_at_the_top, "shared/server/x.py", "import os\ndef f():\n    import json  #!"),
    (rules.imports_stand_at_the_top, "shared/program/run.py", "def f():\n    import json"),
    (rules.functions_are_small, "shared/x.py", 'def f():\n    """Doc."""\n' + "    pass\n" * 49),
    (rules.functions_are_small, "shared/x.py", "def f():  #!\n" + "    pass\n" * 50),
    (
        rules.functions_are_small,
        "shared/x.py",
        "def f(a, b, c, *, d, e, f): ...\ndef g(a, b, c, *, d, e, f, g): ...  #!",
    ),
    (rules.functions_are_small, "shared/x.py", "class A:\n    def f(self, a, b, c, d, e, f): ..."),
    (
        rules.functions_are_small,
        "shared/x.py",
        "def f():  #!\n while 1:\n  for x in y:\n   with z:\n    if x:\n     pass",
    ),
    (
        rules.functions_are_small,
        "shared/x.py",
        "def f():\n while 1:\n  for x in y:\n   if x:\n    pass\n   elif y:\n    pass\n   else:\n    pass",
    ),
    (rules.public_names_have_docstrings, "shared/x.py", "def _f(): ...\ndef f(): ...  #!"),
    (
        rules.public_names_have_docstrings,
        "shared/x.py",
        "class A:  #!\n    def _f(self): ...\n    def f(self): ...  #!",
    ),
    (rules.functions_are_annotated, "shared/x.py", "def f(a: int, *b: int) -> int: ...\ndef g(*a) -> int: ...  #!"),
    (rules.functions_are_annotated, "shared/x.py", "class A:\n    def f(self, a: int): ...  #!"),
    (rules.descriptors_stay_with_files, "servers/a/x.py", "os.open(x, 0)\nos.open(x, os.O_RDONLY)  #!"),
    (rules.descriptors_stay_with_files, "servers/a/x.py", "os.stat(x)\nos.stat(x, dir_fd=y)  #!"),
    (rules.descriptors_stay_with_files, "shared/x.py", "O_K = 1\nx = getattr(os, 'O_CLOEXEC', 0)  #!"),
    (rules.descriptors_stay_with_files, "servers/common/files/x.py", "os.open(x, os.O_RDONLY, dir_fd=y)"),
    (
        rules.excepts_are_narrow,
        "shared/x.py",
        "try: pass\nexcept OSError: pass\nexcept (OSError, Exception): pass  #!",
    ),
    (rules.excepts_are_narrow, "shared/x.py", "try: pass\nexcept: pass  #!"),
    (
        rules.modules_are_left_to_the_import_system,
        "servers/start.py",
        "sys.modules['ssl'] = None  #!\ndel sys.modules[x]  #!\nsys.modules.setdefault(x, y)  #!\nx = sys.modules[y]",
    ),
    (rules.modules_are_left_to_the_import_system, "shared/x.py", "x = 'import sys; sys.modules[y] = z'  #!"),
    (
        rules.names_of_others_are_public,
        "servers/x.py",
        "import x, _y  #!\nfrom x import _y  #!\nfrom x._y import z  #!\nx._y  #!\nf('x._y')  #!\na = x.y, a._y",
    ),
    (rules.names_of_others_are_public, "shared/x.py", "import os\nfrom . import _x\nos._exit(1)\nself._x\n'_x'"),
]


def test_each_rule_reports_a_violation() -> None:
    wrong = []
    for rule, path, text in SNIPPETS:
        expected = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("#!")]
        found = sorted({line for line, _ in rule(Source(path, text))})
        wrong += [(rule.__name__, path, text, found)] if found != expected else []
    assert not wrong
    assert {rule for rule, *_ in SNIPPETS} == set(RULES)


def test_test_files_mirror_their_sources() -> None:
    files = [path.relative_to(rules.ROOT).as_posix() for path in (rules.ROOT / "tests").rglob("test_*.py")]
    assert set(rules.tests_without_source(files)) == set(rules.NO_MIRROR)


def test_a_test_file_without_a_source_is_reported() -> None:
    mirrored = [
        "tests/shared/server/dispatch/test_calls.py",
        "tests/shared/server/test_server.py",
        "tests/checks/test_any.py",
    ]
    assert rules.tests_without_source([*mirrored, "tests/shared/test_calls.py"]) == ["tests/shared/test_calls.py"]


def test_quick_tests_import_no_checks() -> None:
    tests = rules.ROOT / "tests"
    files = [path for path in tests.rglob("*.py") if not path.is_relative_to(tests / "checks")]
    # `make test` must not read files that it does not run; names in strings are loaded when a table is printed.
    assert [
        path for path in files if re.search(r"^ *(from|import) tests\.checks", path.read_text(), re.MULTILINE)
    ] == []
