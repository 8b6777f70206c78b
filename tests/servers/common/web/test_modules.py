"""Rules for every file shipped for a browser, mostly for modules."""

import gzip
import re
import subprocess
from pathlib import Path

from servers.common.web.modules import read_modules
from servers.common.web.pages import assemble

ROOT = Path(__file__).resolve().parents[4]
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
# Files whose comments name what a rule forbids.
SPOKEN_OF = {("dom.js", "writes HTML from a text")}


def breaches(name: str, text: str) -> list[str]:
    """The breaches of rules in a file, as line and rule."""
    return [
        f"{text.count(chr(10), 0, found.start()) + 1}: {rule}"
        for rule, pattern in FORBIDDEN.items()
        if (name, rule) not in SPOKEN_OF
        for found in re.finditer(pattern, text, re.MULTILINE)
    ]


def test_each_browser_file_follows_the_rules() -> None:
    assert {path: found for path in SHIPPED if (found := breaches(path.name, path.read_text()))} == {}


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


def test_each_rule_detects_a_breach() -> None:
    assert {text: breaches("x.js", f"a\n{text}") for text in BAD} == {text: [f"2: {BAD[text]}"] for text in BAD}
    assert set(BAD.values()) == set(FORBIDDEN)


def test_each_module_can_be_joined_with_its_imports() -> None:
    joined: set[Path] = set()
    for path in sorted(SCRIPTS, key=lambda path: path.read_text().count("\nimport "), reverse=True):
        if path not in joined:  # a module joined into another one needs no separate check
            joined |= {module.path for module in read_modules(path)}
    assert set(SCRIPTS) <= joined


def test_each_module_is_valid_javascript(node: Path) -> None:
    # Node checks one file at a time, which would take a process for each.
    check = "import vm from 'vm'; import fs from 'fs'; for (const path of process.argv.slice(1)) "
    check += "new vm.SourceTextModule(fs.readFileSync(path, 'utf8'), { identifier: path });"
    command = [node, "--experimental-vm-modules", "--no-warnings", "--input-type=module", "-e", check, "--"]
    done = subprocess.run([*command, *SCRIPTS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def exported(text: str) -> set[str]:
    """The names that the text of a module exports."""
    return set(re.findall(r"^export (?:async )?(?:function|class|const) ([\w$]+)", text, re.MULTILINE))


def imported(text: str) -> set[str]:
    """The names that the text of a module imports."""
    return {
        name for names in re.findall(r"^import \{ (.*) \} from", text, re.MULTILINE) for name in names.split(", ")
    }


def test_each_module_imports_exactly_the_names_it_uses() -> None:
    """On a page a module could use names that only other modules import; on another page it would break."""
    texts = {path: path.read_text() for path in SCRIPTS}
    exports = {path: exported(text) for path, text in texts.items()}
    declared = r"\b{0}(?: = |,? )|^ *(?:async )?{0}\(.*\) \{{"
    wrong = {}
    for path, text in texts.items():
        body = re.sub(r"^import .*", "", text, flags=re.MULTILINE)
        words = set(re.findall(r"[\w$]+", body))
        others = set().union(*(names for other, names in exports.items() if other != path)) - imported(text)
        called = {name for name in others & words if re.search(rf"(?<![\w$.#]){re.escape(name)}\(", body)}
        own = {name for name in called if re.search(declared.format(re.escape(name)), body, re.MULTILINE)}
        if found := (imported(text) - words) | (called - own):
            wrong[path] = found
    assert wrong == {}


def test_each_page_stays_within_its_size_limit() -> None:
    """An app is read as it is; the workbench travels compressed."""
    for path in PAGES:
        if "workbench" in path.parts:
            assert len(gzip.compress(assemble(path).html.encode())) <= 150 * KIB
        else:
            assert assemble(path).size <= 100 * KIB, path


def test_each_module_and_export_has_a_comment() -> None:
    silent = {}
    for path in SCRIPTS:
        lines = path.read_text().splitlines()
        assert lines[0].startswith("//"), f"{path} begins with what it is for"
        silent[path] = [
            line
            for before, line in zip(["", *lines], lines, strict=False)
            if line.startswith("export ") and not before.rstrip().endswith("*/")
        ]
    assert {path: lines for path, lines in silent.items() if lines} == {}
