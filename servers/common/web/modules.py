"""Joins ES modules into one. Each becomes a function, which comes after those of the modules that it imports.

This is a minimal bundler: the output is the source without import lines, the word `export`, comments and indentation.
Modules must follow a few rules. An error names the place that violates one:

- Imports are single lines at the top: `import { a, b } from "./other.js";`, or `import "./other.js";` for a module
  that only defines an element.
- A declaration without indentation is a top-level one, and declares one name.
- Only functions, classes and constants are exported, where they are declared. Their names are unique among all joined
  modules. Other names may occur in several modules.
- No dynamic import, no top-level await, no `import.meta`, and no text that contains `</script`, `<script` or `<!--`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_IMPORT = re.compile(r'import (?:\{ ([\w$]+(?:, [\w$]+)*) \} from )?"(\.{1,2}/[\w./-]+\.js)";')
_DECLARED = re.compile(r"(export )?(?:async )?(?:function\*?|class|const|let|var) +([\w$]+|[{\[])")
_SEVERAL_NAMES = re.compile(r"(?:export )?(?:const|let|var) [\w$]+(?: = [\w$.\"]+)?, [\w$]+")
_FORBIDDEN = {
    "unsupported form of export": re.compile(r"^export (?!(?:async )?function\b|class\b|const\b)", re.MULTILINE),
    "uses dynamic import": re.compile(r"(?<![\w$.])import\s*\("),
    "uses import.meta": re.compile(r"\bimport\.meta\b"),
    "uses top-level await": re.compile(r"^(?! |//|/\*|\*)(?!.*\basync\b).*\bawait\b", re.MULTILINE),
    "contains text that ends or hides a script": re.compile(r"</script|<script|<!--", re.IGNORECASE),
}


class PageError(ValueError):
    """Raised for a page or module that breaks a rule. The message names the rule and the place."""


@dataclass(frozen=True)
class Module:
    """A module: its path, its imports, its exports, and the rest of its text."""

    path: Path
    imports: tuple[tuple[Path, tuple[str, ...]], ...]
    exports: frozenset[str]
    body: str


def read_modules(path: Path) -> list[Module]:
    """Return the module at `path` and all modules it imports, each after those that it imports. Raises PageError."""
    ordered: dict[Path, Module] = {}
    _collect(path.resolve(), ordered, ())
    owners: dict[str, Module] = {}
    for module in ordered.values():
        for name in module.exports:
            other = owners.setdefault(name, module)
            if other is not module:
                raise PageError(f"{module.path}: {other.path.name} exports a {name}, too")
        for target, imported in module.imports:
            missing = [name for name in imported if name not in ordered[target].exports]
            if missing:
                raise PageError(f"{module.path}: {target.name} exports no {missing[0]}")
    return list(ordered.values())


def join_modules(modules: list[Module]) -> str:
    """Return the text of one module, in which each of the `modules` is a function that returns its exports."""
    functions: list[str] = []
    for module in modules:
        text, names = without_comments(module.body), ", ".join(sorted(module.exports))
        functions.append(
            f"const {{ {names} }} = (() => {{\n{text}\nreturn {{ {names} }};\n}})();"
            if names
            else f"(() => {{\n{text}\n}})();"
        )
    return "\n".join(functions)


def _collect(path: Path, ordered: dict[Path, Module], importers: tuple[Path, ...]) -> None:
    """Add the module at `path` to `ordered`, after the modules it imports."""
    if path in importers:
        raise PageError(f"{importers[-1]}: circular import of {path.name}")
    if path in ordered:
        return
    module = _read_module(path)
    for target, _ in module.imports:
        _collect(target, ordered, (*importers, path))
    ordered[path] = module


def _read_module(path: Path) -> Module:
    """Read the module at `path`. Raises PageError if it breaks a rule."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"{path}: {error}") from None
    lines = text.splitlines()
    imports: list[tuple[Path, tuple[str, ...]]] = []
    for number, line in enumerate(lines, 1):
        if re.match(r"import\b(?!\s*[.(])", line):
            match = _IMPORT.fullmatch(line.rstrip())
            if not match:
                raise PageError(f'{path}:{number}: an import must be one line: import {{ a, b }} from "./other.js";')
            names = tuple(match[1].split(", ")) if match[1] else ()
            imports.append(((path.parent / match[2]).resolve(), names))
            lines[number - 1] = ""
    body = "\n".join(lines)
    for fault, pattern in _FORBIDDEN.items():
        match = pattern.search(body)
        if match:
            raise PageError(f"{path}:{body.count(chr(10), 0, match.start()) + 1}: {fault}")
    declared: list[tuple[str, bool]] = []  # the top-level names, and whether they are exported
    for number, line in enumerate(lines, 1):
        match = _DECLARED.match(line)
        if match and (match[2] in "{[" or _SEVERAL_NAMES.match(line)):
            raise PageError(f"{path}:{number}: a top-level declaration has one name")
        if match:
            declared.append((match[2], bool(match[1])))
    body_without_exports = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    imported = {name for _, names in imports for name in names}
    duplicate = next((name for name, _ in declared if name in imported), None)
    if duplicate:
        raise PageError(f"{path}: {duplicate} is both imported and declared")
    return Module(
        path, tuple(imports), frozenset(name for name, exported in declared if exported), body_without_exports
    )


def without_comments(text: str) -> str:
    """Return `text` without whole-line comments, indentation and empty lines.

    A template literal that spans several lines stays unchanged.
    """
    lines = []
    in_comment = in_template = False
    for line in text.splitlines():
        stripped = line if in_template else line.strip()
        if not in_template and not in_comment and stripped.startswith("/*"):
            in_comment = True
        if in_comment:
            in_comment = "*/" not in stripped
            continue
        if not in_template and (not stripped or stripped.startswith("//")):
            continue
        lines.append(stripped)
        # A single backtick in a string counts as the start of a template, so comments after it may remain.
        in_template ^= line.count("`") % 2 == 1
    return "\n".join(lines)
