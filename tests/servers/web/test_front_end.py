"""What holds for every file that is shipped for a browser, wherever it stands."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from servers.web.modules import read_modules
from servers.web.pages import assemble

ROOT = Path(__file__).resolve().parents[3]
KIB = 1_024
SHIPPED = sorted(path for kind in ("js", "html", "css") for path in (ROOT / "servers").rglob(f"*.{kind}"))
SCRIPTS = [path for path in SHIPPED if path.suffix == ".js"]
PAGES = [path for path in SHIPPED if path.suffix == ".html"]

FORBIDDEN = {
    "writes HTML from a text": r"\b(inner|outer)HTML\b|insertAdjacentHTML|document\.write|(set|parse)HTMLUnsafe"
    r"|createContextualFragment|DOMParser|srcdoc\s*[=:]",
    "runs a text": r"\beval\s*\(|new\s+Function\b|(?<!new )\bFunction\s*\(|set(Timeout|Interval)\s*\(\s*[\"'`]",
    "sets a style or a handler as text": r"setAttribute\(\s*[\"'](style|on\w+)[\"']|\bcssText\b"
    r"|\.on(click|load|error)\s*=",
    "asks another host": r"[\"'`(](?:https?|wss?):?//(?![\w.]*[\"'`]|www\.w3\.org/)[\w.-]+\.\w",
    "keeps something in the browser": r"\b(document\.cookie|indexedDB)\b",
    "has a tab": r"\t",
    "is too wide": r"^.{119,}$",
    "has space at the end of a line": r" +$",
}
# Where a rule speaks of what it forbids.
SPOKEN_OF = {("dom.js", "writes HTML from a text")}


def breaches(name: str, text: str) -> list[str]:
    """Where a file breaks a rule, as line and rule."""
    return [
        f"{text.count(chr(10), 0, found.start()) + 1}: {rule}"
        for rule, pattern in FORBIDDEN.items()
        if (name, rule) not in SPOKEN_OF
        for found in re.finditer(pattern, text, re.MULTILINE)
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_it_keeps_the_rules(path: Path) -> None:
    assert breaches(path.name, path.read_text()) == []


BAD = {
    "a.innerHTML = b": "writes HTML from a text",
    "new DOMParser()": "writes HTML from a text",
    "eval (a)": "runs a text",
    "new Function(a)": "runs a text",
    "setTimeout('a()')": "runs a text",
    "a.setAttribute('style', b)": "sets a style or a handler as text",
    "a.onclick = b": "sets a style or a handler as text",
    "fetch('https://example.com/a')": "asks another host",
    "document.cookie = a": "keeps something in the browser",
    "\ta": "has a tab",
    "a" * 119: "is too wide",
    "a ": "has space at the end of a line",
}


@pytest.mark.parametrize("text", BAD)
def test_each_rule_finds_what_breaks_it(text: str) -> None:
    assert breaches("x.js", f"a\n{text}") == [f"2: {BAD[text]}"]
    assert set(BAD.values()) == set(FORBIDDEN)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_module_can_be_joined_with_all_it_imports(path: Path) -> None:
    assert path in [module.path for module in read_modules(path)]


@pytest.mark.slow
def test_each_module_is_valid(node: Path) -> None:
    # Node takes one file at a time; that would be a process for each.
    check = "import vm from 'vm'; import fs from 'fs'; for (const path of process.argv.slice(1)) "
    check += "new vm.SourceTextModule(fs.readFileSync(path, 'utf8'), { identifier: path });"
    command = [node, "--experimental-vm-modules", "--no-warnings", "--input-type=module", "-e", check, "--"]
    done = subprocess.run([*command, *SCRIPTS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def exported(path: Path) -> set[str]:
    """The names that a module exports."""
    return set(re.findall(r"^export (?:async )?(?:function|class|const) ([\w$]+)", path.read_text(), re.MULTILINE))


def imported(text: str) -> set[str]:
    """The names that the text of a module imports."""
    return {
        name for names in re.findall(r"^import \{ (.*) \} from", text, re.MULTILINE) for name in names.split(", ")
    }


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_module_imports_is_what_it_uses(path: Path) -> None:
    """In one page with others, a module could use what only they import; in another page it would break."""
    text = path.read_text()
    body = re.sub(r"^import .*", "", text, flags=re.MULTILINE)
    assert {name for name in imported(text) if not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", body)} == set()
    others = set().union(*(exported(other) for other in SCRIPTS if other != path)) - imported(text)
    called = {name for name in others if re.search(rf"(?<![\w$.#]){re.escape(name)}\(", body)}
    declared = r"\b{0}(?: = |,? )|^ *(?:async )?{0}\(.*\) \{{"
    own = {name for name in called if re.search(declared.format(re.escape(name)), body, re.MULTILINE)}
    assert called - own == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_page_is_small_enough(path: Path) -> None:
    """An app is read as it is; the workbench travels compressed."""
    if "workbench" in path.parts:
        assert len(gzip.compress(assemble(path).html.encode())) <= 150 * KIB
    else:
        assert assemble(path).size <= 100 * KIB


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_is_exported_says_what_it_is(path: Path) -> None:
    lines = path.read_text().splitlines()
    silent = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.startswith("export ") and not before.rstrip().endswith("*/")
    ]
    assert silent == []
    assert lines[0].startswith("//"), "a file begins with what it is for"
