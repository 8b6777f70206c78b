"""The rules of the code, checked on the source with `ast`: this module imports nothing of the project.

Each rule is a function from one source file to the lines that break it; `test_architecture.py` applies them.
The exceptions to a rule are in a table with their reason.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Independent of the protocol, even of its errors: workers load only these, and any file of a server may.
PLAIN = {"text", "steps", "concurrency", "coded_errors", "lazy_classes", "lazy_modules", "tracing", "yaml"}
# The import ladder: a part may import parts on its own step or lower. "" is shared/__init__.py.
LADDER = [
    {"errors", "version", *PLAIN},
    {"protocol"},
    {"contracts", "auth"},
    {"server", "stores"},
    {"extensions", "telemetry", "names", ""},
    {"transports"},
    {"client", "program", "testing"},
]
STRANGERS = {("client", "server"), *((part, known) for part in PLAIN for known in ("errors", "version"))}
STEP = {part: step for step, parts in enumerate(LADDER) for part in parts}
# The ladder of `servers`; all other folders are a server, or the gateway, on the second step.
SERVER_STEP = {"common": 0, "start": 0, "catalog": 0, "bundle": 2, "__main__": 3}

IMPURE = set("anyio asyncio os sys socket threading time logging starlette aiohttp httpx uvicorn".split())  # noqa: SIM905
SDKS = {"mcp", "mcp_types", "fastmcp"}
DATES = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
# The folders of `servers` that work with the protocol itself: the bundle as a whole, and servers behind servers.
BUNDLE = {"bundle", "gateway"}
# Common code of servers above `shared`. It is independent, as a server is, but servers may import it.
COMMON = {"common", "start"}
# The files of a server that know `shared`, besides those in its `features`; the others know this much of it.
FACES = {"server.py", "__main__.py", "settings.py"}
OF_ALL = tuple(f"shared.{part}" for part in (*sorted(PLAIN), "program.files", "program.line_parser"))

MAX_BODY, MAX_PARAMETERS, MAX_NESTING = 50, 6, 3

# Exceptions, file -> reason.
LATE_IMPORTS: dict[str, str] = {
    "servers/bundle/program.py": "what a command does not need is not loaded, and nothing before modules are put off",
    "servers/start.py": "nothing of ours is loaded before the collector is off and modules are put off",
    "servers/gateway/__main__.py": "nothing of ours is loaded before modules are put off",
    "servers/postgres/__main__.py": "what says that a library is missing is loaded where it is",
    "servers/sqlite/__main__.py": "what says that a library is missing is loaded where it is",
    "shared/text.py": "most names are right, and difflib is for those that are not",
    "servers/filesystem/edit/indentation.py": "difflib is loaded with the first edit that needs it",
    "servers/filesystem/edit/replacements.py": "difflib is loaded with the first edit that needs it",
    "servers/filesystem/edit/diff.py": "difflib is loaded with the first difference that is shown",
    "shared/telemetry/footprint.py": "ctypes takes 3 ms to load, and is for HTTP and sqlite",
    "shared/yaml.py": "pyyaml is an extra, loaded with the first text in YAML",
    "shared/protocol/wire/dialects/__init__.py": "most connections never speak a dialect",
    "shared/protocol/wire/codec.py": "nearly all peers send lines, and need no reader of headers",
    "shared/client/connect.py": "aiohttp and websockets are an extra, and a client of processes needs none",
    "shared/client/schemas/schemas.py": "jsonschema-rs is an extra, loaded with the first schema to check against",
    "shared/program/settings/option_parser.py": "who asks for help waits for argparse, and nobody else",
    "shared/program/authorization.py": "joserfc and httpx are an extra, loaded where an operator names an issuer",
    "shared/program/rules.py": "most servers have no rules",
    "shared/program/replication.py": "redis is an extra, loaded where an operator names a store",
    "shared/program/observation.py": "opentelemetry is an extra, loaded where an operator names a receiver",
    "shared/program/event_loop.py": "uvloop is an extra, and for HTTP alone",
    "shared/program/process.py": "what says how much a listener takes stands with the web server, for HTTP alone",
    "shared/program/run.py": "a transport is imported when it is chosen, a reader of settings where there is a file",
    "shared/program/worker.py": "most programs are the only process that serves, and count for nobody else",
    "shared/program/messages.py": "most copies have what they need; what says how to add it is loaded where not",
    "servers/gateway/proxy/remote.py": "what obtains tokens is an extra, loaded where the user has logged in",
    "servers/gateway/proxy/accounts.py": "keyring is an extra, and takes a while to find what a system has",
    "servers/bundle/commands/serve.py": "it says which extra is missing, or starts workers, without a web server",
    "servers/bundle/commands/open.py": "it says which extra is missing, without a web server",
    "shared/transports/http/app/endpoint.py": "websockets takes 5 ms to load, and most clients speak HTTP",
    "shared/transports/http/app/probes.py": "prometheus-client takes a tenth of a second, and nobody may ever scrape",
    "servers/bundle/doctor/logins.py": "httpx is an extra, loaded where a server wants a login",
    "servers/bundle/terminal/targets.py": "what reads the files of clients is loaded where a client is named",
    "servers/bundle/terminal/progress.py": "most calls are done before they report anything, and need no bar",
    "servers/fetch/features/excerpts.py": "sqlite3 and difflib are loaded with the first page that is searched",
    "servers/fetch/features/state.py": "what loads and reads pages is big, and is loaded with the first page",
    "servers/fetch/network/hosts.py": "most names are ASCII, and the tables of all others take a while to load",
    "servers/common/documents/worker.py": "a worker loads what a kind of document needs with the first one of it",
    "servers/fetch/read/worker.py": "a worker loads what a kind of page needs with the first page of that kind",
    "servers/filesystem/history/recording.py": "sqlite3 and filelock are loaded with the first change",
    "servers/filesystem/read/media_types.py": "content-types is an extra, which takes a while to load",
    "servers/filesystem/search/look_alikes.py": "only who asks for what is not there needs the tables of names",
    "servers/filesystem/search/matcher.py": "google-re2 is an extra, loaded with the first search of contents",
    "servers/filesystem/search/gitignore.py": "pathspec is an extra, loaded with the first .gitignore",
    "servers/common/charsets.py": "what is not UTF-8 is rare, and a charset detector is big",
    "servers/common/documents/reading.py": "the library of a kind of document is loaded with the first one of it",
    "servers/common/globs.py": "most patterns are ASCII, and the tables of all others are large",
    "servers/common/files/names.py": "most names are ASCII, and the tables of all others are large",
    "servers/common/files/exchange.py": "ctypes takes 3 ms to load, and is needed with the first edit",
    "servers/common/notices.py": "watchfiles is an extra, loaded when something is first watched",
    "servers/prompts/settings.py": "what runs git and keeps what it fetched is loaded where a library is in git",
    "servers/prompts/server.py": "what runs git and keeps what it fetched is loaded where a library is in git",
    "servers/prompts/__main__.py": "a server needs nothing of its other commands",
    "servers/prompts/features/tools.py": "what writes prompts is loaded with the first one that is written",
    "servers/prompts/format/commands.py": "a start does not pay for the parser of TOML",
    "servers/prompts/templates/rendering.py": "Jinja is an extra, loaded with the first prompt that is rendered",
    "servers/common/web/app_pages.py": "most clients show no pages, and what makes one loads OpenSSL",
    "servers/common/sql/importing/workbooks.py": "openpyxl takes a while to load, and most imports are of text",
    "servers/common/sql/temporary.py": "tempfile loads much, and only exports and databases in memory need it",
}
UPWARDS: dict[tuple[str, str], str] = {}  # file and what it imports -> what will remove the import
# Folder -> its members in an import cycle, types included -> what will remove the cycle.
CIRCLES: dict[str, dict[tuple[str, ...], str]] = {}
BROAD_EXCEPTS: dict[str, tuple[str, ...]] = {  # a handler for each reason, six at most
    "shared/client/group/member.py": ("a server of a group that fails in any way must not take the others with it",),
    "shared/server/declaration.py": ("an author's translation that fails must not leave its call without an answer",),
    "shared/server/dispatch/calls.py": (
        "the one place where any exception becomes an answer",
        "what a tool that was to answer at once fails of is found again by its task, and told there",
    ),
    "servers/common/workers/serving.py": ("a damaged file may break its reader in any way, and costs itself only",),
    "shared/transports/http/streamable/sessions.py": ("one session that fails must not take the others with it",),
}
LOGGING_PROTOCOL: dict[str, str] = {
    "shared/protocol/wire/codec.py": "a bug of a dialect becomes an answer, and nobody else would hear of it"
}
USE_PRIVATE_NAMES: dict[str, str] = {
    "servers/start.py": "data classes of the event loop are defined cheaply if it is loaded early",
    "shared/telemetry/otel.py": "the library logs each failed attempt under this name",
    "servers/common/notices.py": "the public functions of watchfiles ignore directories that can't be watched",
}
KNOW_DESCRIPTORS: dict[str, str] = {
    "shared/telemetry/audit_file.py": "a line is one write at the end of a file that several processes have open",
    "shared/telemetry/trace.py": "the operator names the file, which may be a pipe, and nobody else may read it",
    "shared/program/process.py": "the null device stands where a standard stream is missing",
    "shared/transports/stdio.py": "the null device stands where the protocol's streams were",
    "servers/bundle/program.py": "the null device stands where nobody reads any more",
    "servers/common/workers/serving.py": "the null device stands where the protocol's streams were",
    "servers/prompts/cli/parser.py": "the null device stands where nobody reads any more",
}


@dataclass(frozen=True)
class Import:
    """One imported module, and the place of the statement."""

    line: int
    target: str
    late: bool
    typing_only: bool


@dataclass(frozen=True)
class Source:
    """One file: its path from the root of the project, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return [*ast.walk(self.tree)]

    @cached_property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def part(self) -> str:
        """The step of a ladder this file of `shared` or `servers` belongs to; "" for their own __init__.py."""
        return _part(self.module)

    @cached_property
    def server(self) -> str | None:
        """The name of the server whose folder the file is in."""
        folders = self.path.split("/")
        return folders[1] if folders[0] == "servers" and len(folders) > 2 and folders[1] not in BUNDLE else None

    @cached_property
    def imports(self) -> list[Import]:
        return list(_imports(self, self.tree))

    @cached_property
    def functions(self) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool, bool]]:
        """Every function, whether it is a method, and whether it is public."""
        return [(node, method, public) for node, method, public in _definitions(self.tree) if _is_function(node)]

    def forget(self) -> None:
        """Drops the tree, which is parsed again when needed: all trees together are millions of objects."""
        for name in ("tree", "nodes", "functions"):
            vars(self).pop(name, None)


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _imports(source: Source, node: ast.AST, late: bool = False, typing_only: bool = False) -> Iterator[Import]:
    for child in _statements(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            for target in _targets(source, child):
                yield Import(child.lineno, target, late, typing_only)
        guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports(source, child, late or _is_function(child), typing_only or guarded)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the direct children that may contain statements: most of a tree are expressions, which take long."""
    kinds = ast.stmt | ast.ExceptHandler | ast.match_case
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, kinds))


def _walk(source: Source, hint: str) -> Iterator[ast.AST]:
    """Yields all nodes if the text matches a regular expression."""
    return iter(source.nodes if re.search(hint, source.text) else ())


def _targets(source: Source, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = source.module.split(".") if source.path.endswith("__init__.py") else source.module.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
    for alias in node.names:
        full = f"{base}.{alias.name}"
        yield full if full in MODULES else base


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _definitions(node: ast.AST, method: bool = False, public: bool = True) -> Iterator[tuple]:
    for child in _statements(node):
        if _is_function(child) or isinstance(child, ast.ClassDef):
            visible = public and not child.name.startswith("_")
            yield child, method, visible
            is_class = isinstance(child, ast.ClassDef)
            yield from _definitions(child, is_class, visible and is_class)
        else:
            yield from _definitions(child, method, public)


def _load() -> dict[str, Source]:
    paths = [path for folder in ("shared", "servers") for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    return {source.path: source for source in sources}


MODULES: set[str] = set()
SOURCES = _load()
MODULES.update(source.module for source in SOURCES.values())

Findings = Iterator[tuple[int, str]]


# The rules


def protocol_is_pure(source: Source) -> Findings:
    if not source.path.startswith("shared/protocol/"):
        return
    impure = IMPURE - {"logging"} if source.path in LOGGING_PROTOCOL else IMPURE
    for one in source.imports:
        if one.target.split(".")[0] in impure:
            yield one.line, f"protocol/ imports {one.target}"
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await):
            yield node.lineno, "protocol/ is async here"
        if isinstance(node, ast.comprehension) and node.is_async:
            yield node.target.lineno, "protocol/ is async here"


def imports_go_down_the_ladder(source: Source) -> Findings:
    if not source.path.startswith("shared/"):
        return
    if source.part not in STEP:
        yield 1, f"shared/{source.part} has no step on the ladder"
        return
    for one in source.imports:
        if one.target.split(".")[0] != "shared":
            continue
        part = _part(one.target)
        if (source.path, one.target) in UPWARDS:
            continue
        if STEP.get(part, len(LADDER)) > STEP[source.part] or (source.part, part) in STRANGERS:
            yield one.line, f"{source.part or 'shared'} imports {one.target}"


def shared_knows_no_server(source: Source) -> Findings:
    for one in source.imports if source.path.startswith("shared/") else ():
        if one.target.split(".")[0] == "servers":
            yield one.line, f"shared imports {one.target}"


def servers_go_down_their_ladder(source: Source) -> Findings:
    for one in source.imports if source.path.startswith("servers/") else ():
        other = _part(one.target)
        if one.target.split(".")[0] != "servers" or not other or other == source.part:
            continue
        if SERVER_STEP.get(other, 1) >= SERVER_STEP.get(source.part, 1):
            yield one.line, f"{source.part or 'servers'} imports {one.target}"


def servers_stand_alone(source: Source) -> Findings:
    for one in source.imports if source.server else ():
        top, _, rest = one.target.partition(".")
        if top == "servers" and rest.split(".")[0] not in {source.server, *COMMON}:
            yield one.line, f"{source.server} imports {one.target}"
        is_face = _is_face(Path(source.path))
        if top == "shared" and not is_face and not one.target.startswith(OF_ALL):
            yield one.line, f"a domain file imports {one.target}"


def imports_inside_a_server_are_relative(source: Source) -> Findings:
    if source.path.count("/") < 2 or not source.path.startswith("servers/"):
        return
    package = f"servers.{source.part}."
    for node in _walk(source, re.escape(f"from {package[:-1]}")):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(package) and not node.level:
            yield node.lineno, f"imports {node.module} by its absolute name"


def _is_face(path: Path) -> bool:
    return path.name in FACES or path.parent.name == "features"


def no_sdk(source: Source) -> Findings:
    for one in source.imports:
        if one.target.split(".")[0] in SDKS:
            yield one.line, f"imports {one.target}"


def dates_live_in_versions(source: Source) -> Findings:
    if source.path == "shared/protocol/versions.py":
        return
    nodes = list(_walk(source, "|".join(DATES)))
    comments = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in DATES and id(node) not in comments:
            yield node.lineno, f"names the version {node.value}"


def only_protocol_reads_the_version(source: Source) -> Findings:
    if source.path.startswith("shared/protocol/"):
        return
    for node in _walk(source, r"peer\.version"):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("peer.version"):
            yield node.lineno, f"reads {ast.unparse(node)}"


def only_the_codec_decodes(source: Source) -> Findings:
    for node in _walk(source, "codec") if source.path != "shared/protocol/wire/codec.py" else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "codec":
            taken = any(alias.name == "decode" for alias in node.names)
        else:
            taken = isinstance(node, ast.Attribute) and ast.unparse(node).endswith("codec.decode")
        if taken:
            yield node.lineno, "decodes without the Codec of its connection"


def imports_stand_at_the_top(source: Source) -> Findings:
    for one in source.imports if source.path not in LATE_IMPORTS else ():
        if one.late:
            yield one.line, f"imports {one.target} inside a function"


def functions_are_small(source: Source) -> Findings:
    for node, method, _ in source.functions:
        body = (node.end_lineno or 0) - node.lineno + 1 - _docstring_lines(node)
        parameters = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        parameters -= bool(method and parameters and not _decorated(node, "staticmethod"))
        for what, value, limit in [
            ("lines", body, MAX_BODY),
            # A model names the arguments of a tool, so it can't mix them up, and the schema says what each is.
            ("parameters", 0 if _decorated(node, ".tool(") else parameters, MAX_PARAMETERS),
            ("levels of nesting", _depth(node.body), MAX_NESTING),
        ]:
            if value > limit:
                yield node.lineno, f"{node.name} has {value} {what}, more than {limit}"


def public_names_have_docstrings(source: Source) -> Findings:
    for node, _, public in _definitions(source.tree) if source.path.startswith("shared/") else ():
        exempt = _decorated(node, "overload") or _decorated(node, ".setter") or _decorated(node, ".deleter")
        if public and not exempt and not ast.get_docstring(node):
            yield node.lineno, f"{node.name} has no docstring"


def functions_are_annotated(source: Source) -> Findings:
    for node, method, _ in source.functions if source.path.startswith("shared/") else ():
        arguments = [*node.args.posonlyargs, *node.args.args]
        if method and not _decorated(node, "staticmethod"):
            arguments = arguments[1:]
        arguments += [*node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]
        bare = [argument.arg for argument in arguments if argument.annotation is None]
        if node.returns is None:
            bare.append("return")
        if bare:
            yield node.lineno, f"{node.name} lacks annotations: {', '.join(bare)}"


def descriptors_stay_with_files(source: Source) -> Findings:
    if source.path.startswith(("servers/common/files/", "shared/program/files/")) or source.path in KNOW_DESCRIPTORS:
        return
    yield from uses_of_descriptors(source)


def excepts_are_narrow(source: Source) -> Findings:
    for node in broad_excepts(source)[len(BROAD_EXCEPTS.get(source.path, ())) :]:
        yield node.lineno, "catches everything"


def modules_are_left_to_the_import_system(source: Source) -> Findings:
    """Nothing assigns to `sys.modules`, neither in the code nor in the text of a program."""
    for node in _walk(source, r"sys\.modules"):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            text = f"{ast.unparse(node)} ="
        else:
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if changed := re.search(CHANGES_MODULES, text):
            yield node.lineno, f"changes modules: {changed[0]}"


def names_of_others_are_public(source: Source) -> Findings:
    """No name of another distribution, or the standard library, begins with an underscore, neither in the code nor in
    a text such as "package._module"."""
    bound = set()
    for node in _walk(source, r"\b_[A-Za-z]") if source.path not in USE_PRIVATE_NAMES else ():
        paths = []
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [alias for alias in node.names if not OURS.match(base + alias.name)]
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in names}
            paths = [base + alias.name for alias in names]
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            path = ast.unparse(node)
            paths = [path] if path.split(".")[0] in bound else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"[a-z]\w*\.", node.value):
            paths = [node.value]
        for path in paths:
            if PRIVATE.search(path) and path not in DOCUMENTED:
                yield node.lineno, f"uses {path}"


RULES: list[Callable[[Source], Findings]] = [
    protocol_is_pure,
    imports_go_down_the_ladder,
    shared_knows_no_server,
    servers_go_down_their_ladder,
    servers_stand_alone,
    imports_inside_a_server_are_relative,
    no_sdk,
    dates_live_in_versions,
    only_protocol_reads_the_version,
    only_the_codec_decodes,
    imports_stand_at_the_top,
    functions_are_small,
    public_names_have_docstrings,
    functions_are_annotated,
    descriptors_stay_with_files,
    excepts_are_narrow,
    modules_are_left_to_the_import_system,
    names_of_others_are_public,
]


# Measures


def _docstring_lines(node: ast.AST) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def _decorated(node: ast.AST, name: str) -> bool:
    return any(name in ast.unparse(decorator) for decorator in node.decorator_list)


def uses_of_descriptors(source: Source) -> Findings:
    """Yields the lines with flags of `open`, directory descriptors, or changes of open descriptors."""
    for node in _walk(source, rf"\b({DESCRIPTORS.pattern})\b"):
        name = getattr(
            node, {ast.Attribute: "attr", ast.keyword: "arg", ast.Constant: "value"}.get(type(node), ""), ""
        )
        if isinstance(name, str) and DESCRIPTORS.fullmatch(name):
            yield node.lineno, f"uses {name}"


def broad_excepts(source: Source) -> list[ast.ExceptHandler]:
    """Yields the handlers that catch Exception, BaseException or anything."""
    handlers = [node for node in _walk(source, rf"except\s*:|{BROAD.pattern}") if isinstance(node, ast.ExceptHandler)]
    return [one for one in handlers if one.type is None or BROAD.search(ast.unparse(one.type))]


DESCRIPTORS = re.compile(r"O_[A-Z]+|(src_|dst_)?dir_fd|fchmod|fchown")
CHANGES_MODULES = r"sys\.modules(\[.*\] =|\.(setdefault|update|pop|popitem|clear)\b)"
PRIVATE = re.compile(r"^([\w.]+\.)?_[a-zA-Z][\w.]*$")
OURS = re.compile(r"(shared|servers)\b")
DOCUMENTED = {"os._exit", "sys._current_frames", "zlib._Decompress", "lxml.etree._Element"}  # the last two are types
BROAD = re.compile(r"\b(Base)?Exception\b")
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)


def _depth(body: Iterable[ast.stmt], level: int = 0) -> int:
    """Returns the deepest nesting of blocks; `elif` is not a level, and an inner function counts separately."""
    deepest = level
    for node in body:
        for block, inner in _inner_blocks(node) if isinstance(node, BLOCKS) else ():
            deepest = max(deepest, _depth(block, level + inner))
    return deepest


def _inner_blocks(node: ast.stmt) -> Iterator[tuple[list[ast.stmt], int]]:
    chained = isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
    yield getattr(node, "body", []), 1
    yield getattr(node, "orelse", []), 0 if chained else 1
    yield getattr(node, "finalbody", []), 1
    for part in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
        yield part.body, 1


# Import cycles


def circles(sources: Iterable[Source]) -> dict[str, set[tuple[str, ...]]]:
    """Returns the import cycles by folder: its files and folders that reach each other.

    Imports for types and inside functions count as well; the `__init__` of a folder does not, which exports its
    contents.
    """
    graphs: dict[str, dict[str, set[str]]] = {}
    for source in sources:
        for one in source.imports:
            mine, other = source.module.split("."), one.target.split(".")
            depth = next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), None)
            if depth:
                graphs.setdefault("/".join(mine[:depth]), {}).setdefault(mine[depth], set()).add(other[depth])
    found = {folder: set(_circles(graph)) for folder, graph in graphs.items()}
    return {folder: several for folder, several in found.items() if several}


def _circles(graph: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    reached = {name: _reached(graph, name) for name in graph}
    for name, those in reached.items():
        around = sorted(other for other in those if name in reached.get(other, ()))
        if around and around[0] == name:
            yield tuple(around)


def _reached(graph: dict[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    new = graph.get(name, set())
    while new:
        found |= new
        new = set().union(*(graph.get(one, set()) for one in new)) - found
    return found


# The tests beside the source

MIRRORED = ("tests/shared/", "tests/servers/")
NO_MIRROR: dict[str, str] = {}  # test file -> the reason why it has no source of its name


def tests_without_source(paths: Iterable[str]) -> list[str]:
    """Returns the test files whose path mirrors no source file and no folder.

    `tests/servers/fetch/load/test_cache.py` has the tests of `servers/fetch/load/cache.py` or of a folder of that
    name. Those of a folder as a whole may also be inside it: `tests/shared/stores/test_stores.py`.
    """
    return [path for path in paths if path.startswith(MIRRORED) and not _has_source(path)]


def _has_source(path: str) -> bool:
    folder, _, file = path.removeprefix("tests/").rpartition("/")
    name = file.removeprefix("test_").removesuffix(".py")
    beside = f"{folder}/{name}"
    if f"{beside}.py" in SOURCES or (ROOT / beside).is_dir():
        return True
    return (ROOT / folder).is_dir() and folder.endswith(f"/{name}")
