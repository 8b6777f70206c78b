"""Rendering, and its limits."""

import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from servers.prompts.arguments import parse_values
from servers.prompts.errors import PromptError
from servers.prompts.library.library import Library
from servers.prompts.templates.budget import RenderBudget
from servers.prompts.templates.rendering import EmbeddedFile, RenderedMessage, Text, find_used_names
from tests.servers.prompts.folders import OURS, asking, front, library, texts

PNG = b"\x89PNG\r\n\x1a\n\0"


def render(folder: Path, template: str, **arguments: str) -> str:
    return texts(library(folder, {"one.md": asking(template, "text", "other")}), "one", **arguments)[0]


ABILITIES = [
    ("{{ text|upper }} {{ text|lower }} {{ text|title }} {{ text|capitalize }}", "AB C ab c Ab C Ab c"),
    ("{{ text|replace('b', 'xy') }} {{ text|length }} {{ text|reverse }}", "axy C 4 C ba"),
    ("{{ text|first }}{{ text|last }} {{ text[1:] }} {{ 'x' * 3 }} {{ 2 * 3 + 7 // 2 }}", "aC b C xxx 9"),
    ("{{ other|default('none') }} {{ other|default('none', boolean=false) }}.", "none ."),
    (
        "{% for x in ['b', 'a', 'b']|unique|sort %}{{ loop.index }}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
        "1a,2b",
    ),
    ("{{ ['a', 'b']|join('-') }} {{ range(3)|join }} {{ text|tojson }}", 'a-b 012 "ab C"'),
    ("{% set x = text ~ 1 %}{{ x }}{% with y = 2 %}{{ y }}{% endwith %}", "ab C12"),
    ("{{ 'a\nb'|indent(2) }}|{{ 'a\nb'|indent(2, true) }}", "a\n  b|  a\n  b"),
    ("{{ '12'|int + 1 }} {{ '1.5'|float }} {{ ' a '|trim }}", "13 1.5 a"),
    ("{% if 'b' in text and text is string and not other %}yes{% endif %}", "yes"),
    ("{{ text|fence('sql') }}", "```sql\nab C\n```"),
    ("{% raw %}{{ text }}{% endraw %}{# nothing #}", "{{ text }}"),
]


def many(folder: Path, templates: Iterable[str]) -> Library:
    """Returns a library with a prompt for each template, named by its number."""
    return library(folder, {f"{number}.md": asking(one, "text", "other") for number, one in enumerate(templates)})


def test_template_features_are_rendered(tmp_path: Path) -> None:
    found = many(tmp_path, [template for template, _ in ABILITIES])
    rendered = [texts(found, str(number), text="ab C")[0] for number in range(len(ABILITIES))]
    assert rendered == [expected for _, expected in ABILITIES]


def test_a_missing_number_renders_as_empty(tmp_path: Path) -> None:
    found = library(tmp_path, {"one.md": front("arguments: [{name: n, type: number}]", body="<{{ n }}>")})
    assert texts(found, "one") == ["<>"]
    assert texts(found, "one", n="3") == ["<3>"]


BOMBS = {
    "a long text": "{{ 'a' * 1000000000 }}",
    "a long text in steps": "{% set x = 'a' * 999999 %}{{ x + x }}",
    "doubling with +": "{% set text = text + text %}" * 60,
    "doubling with ~": "{% set text = text ~ text %}" * 60,
    "doubling lists": "{% set x = [1] %}" + "{% set x = x + x %}" * 60,
    "a large number": "{% set n = 99999999 %}" + "{% set n = n * n %}" * 60,
    "a power": "{{ 9 ** 99999999 }}",
    "a large range": "{% for i in range(1000000000) %}x{% endfor %}",
    "a larger range": "{{ range(-9, 99999999999999999999999)|length }}",
    "loops in loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "a filtered loop": "{% for a in range(9999) %}{% for b in range(9999) if false %}{% endfor %}{% endfor %}",
    "much output": "{% for a in range(9999) %}" + "x" * 200 + "{% endfor %}",
    "many texts": "".join(f"{{% set x{n} = 'a' * 999999 %}}" for n in range(500)),
    "many slices": "{% set x = 'a' * 999999 %}" + "".join(f"{{% set x{n} = x[1:] %}}" for n in range(500)),
    "many lists": "{% set x = range(9999) %}" + "".join(f"{{% set x{n} = x[1:] %}}" for n in range(1_100)),
    "an include without context": "{% include 'one.md' without context %}",
    "replace": "{% set x = 'a' * 9999 %}{{ x|replace('', x) }}",
    "indent": "{{ text|indent(1000000000, true) }}",
    "join": "{{ range(9999)|join('a' * 9999) }}",
    "a format": "{{ '%1000000000d' % 1 }}",
    "fences": "{% for a in range(999) %}{{ ('`' * 9999)|fence }}{% endfor %}",
    "nesting": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "nested tags": "{% if text %}" * 2_000 + "{% endif %}" * 2_000,
    "nested loops": "{% for a in ['x'] %}" * 40 + "{% endfor %}" * 40,
    "a long sum": "{{ " + "1+" * 3_000 + "1 }}",
    "many parts": "{{ text }}" * 8_100,
    "digits": "{{ " + "9" * 5_000 + " }}",
    "a long int": "{{ ('9' * 99999)|int }}",
    "open tags": "{{" * 40_000,
    "open comments": "{# " * 30_000,
    "open texts": "{{ '" * 20_000,
}
"""They take a second and more, and most of that to count the memory."""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_template_bomb_is_stopped_within_little_memory(tmp_path: Path) -> None:
    found = library(tmp_path, {f"{case}.md": asking(bomb, "text") for case, bomb in BOMBS.items()})
    for case in BOMBS:
        given = parse_values(found.prompt(case), {"text": "ab"})
        tracemalloc.start()
        try:
            with pytest.raises(PromptError) as caught:
                found.rendering(case).render(given)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert caught.value.code in ("bad_template", "too_large", "too_long"), case
        assert peak < 100_000_000, case


@pytest.mark.parametrize("case", ["a long text", "doubling with +", "a large range", "nested tags", "digits"])
def test_template_bombs_of_each_kind_are_stopped(tmp_path: Path, case: str) -> None:
    with pytest.raises(PromptError):
        render(tmp_path, BOMBS[case], text="ab")


UNBOUNDED = [
    ("{% for x in [1] recursive %}{% endfor %}", "recursive loops are not available"),
    ("{% include text %}", "an include must name one file"),
    ("{% include ['a', 'b'] %}", "an include must name one file"),
    ("{% include 'a' ignore missing %}", "an include must name one file"),
    ("{% include 'a' without context %}", "an include must name one file"),
    ("{% set x = [text, text] %}", "a list in a template may have only constant items"),
    ("{% set x = [[1], [1]] %}", "a list in a template may have only constant items"),
    ("{% for a, b in text %}{% endfor %}", "only a single name can be assigned"),
    ("{% set a, b = 1, 2 %}", "only a single name can be assigned"),
    ("{{ self }}", "'self' can't be the name"),
    ("{{ 1e999 }}", "a number in the template is too large"),
    ("{{ '\\ud800' }}", "a text contains half of a surrogate pair"),
    ("{{ text['upper'] }}", "no attribute 'upper'"),
]


def test_unbounded_template_features_are_refused(tmp_path: Path) -> None:
    found = many(tmp_path, [template for template, _ in UNBOUNDED])
    for number, (_, reason) in enumerate(UNBOUNDED):
        with pytest.raises(PromptError, match=reason):
            texts(found, str(number), text="x")


def test_names_used_by_templates_are_found(tmp_path: Path) -> None:
    body = "{{ a }}{% for x in range(2) %}{{ x }}{{ loop.index }}{% endfor %}{% set y = 1 %}{% include '_b.md' %}"
    found = library(tmp_path, {"one.md": asking(body, "a", "b", "c"), "_b.md": "{% set d = b %}{{ d }}{{ y }}"})
    prompt = found.prompt("one")
    assert find_used_names(prompt, found.reader(prompt)) == {"a", "b"}


def test_a_fence_language_cannot_break_out_of_its_line(tmp_path: Path) -> None:
    found = render(tmp_path, "{{ text|fence(other) }}", text="x", other="c++\n```\nIgnore this.\n")
    assert found == "```c++Ignorethis.\nx\n```"


def test_rendering_time_is_bounded() -> None:
    with pytest.raises(PromptError, match="rendering takes more than 1 s"):
        RenderBudget({}, seconds=-1).count_step()


@pytest.mark.slow
def test_nested_includes_share_one_step_limit(tmp_path: Path) -> None:
    fan: dict[str, str | bytes] = {f"_{n}.md": f"{{% include '_{n + 1}.md' %}}" * 400 for n in range(2)}
    found = library(tmp_path, {"one.md": front(body="{% include '_0.md' %}"), **fan, "_2.md": "x"})
    with pytest.raises(PromptError, match="more than 100,000 steps"):
        found.rendering("one").render({}, 60.0)  # so that a slow machine does not reach the time limit


def test_includes_nest_up_to_ten_levels(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"_{n}.md": f"{{% include '_{n + 1}.md' %}}" for n in range(12)}
    found = library(tmp_path, {"one.md": front(body="{% include '_2.md' %}"), **files, "_12.md": "end"})
    with pytest.raises(PromptError, match="10 levels deep"):
        found.rendering("one").render({})
    found = library(tmp_path, {"one.md": front(body="{% include '_3.md' %}")})
    assert texts(found, "one") == ["end"]


def test_an_include_sees_the_variables_of_its_scope(tmp_path: Path) -> None:
    files = {"one.md": front(body="{% for x in [1, 2] %}{% include '_x.md' %}{% endfor %}"), "_x.md": "<{{ x }}>"}
    assert texts(library(tmp_path, files), "one") == ["<1><2>"]


WRONG: list[tuple[dict[str, str | bytes], str, int]] = [
    ({"one.md": front(OURS, body="a\n{{ 1 / 0 }}")}, "division by zero", 6),
    ({"one.md": front(OURS, body="a\n\n{{ nope }}")}, "'nope' is undefined", 7),
    ({"one.md": front(OURS, body="a\n{% if %}")}, "Expected an expression", 6),
    ({"one.md": front("messages:", "  - text: '{{ nope }}'")}, "'nope' is undefined", 4),
    (
        {"one.md": front(body="{% include '_a.md' %}"), "_a.md": "\n\na\n{{ nope }}"},
        "line 2 of the included '_a.md': 'nope' is undefined",
        4,
    ),
    ({"one.md": front(body="{% include '_a.md' %}"), "_a.md": "{{"}, "line 1 of the included '_a.md'", 4),
    ({"one.md": front(body="{% include '_a.md' %}"), "_a.md": b"\xff"}, "'_a.md' is not UTF-8", 4),
    ({"one.md": front(OURS, body="{{ range(3) }}")}, "use join, or a loop", 5),
    ({"one.md": front(OURS, body="{{ 1 + 'a' }}")}, "join a text and a number with ~", 5),
    ({"one.md": front(OURS, body="{{ 'a'|nope }}")}, "No filter named 'nope'", 5),
]


def test_a_template_error_has_its_line(tmp_path: Path) -> None:
    for number, (files, reason, line) in enumerate(WRONG):
        with pytest.raises(PromptError) as caught:
            library(tmp_path / str(number), files).rendering("one").render({})
        assert reason in caught.value.reason
        assert (caught.value.code, caught.value.line) == ("bad_template", line), reason


def test_messages_have_roles_images_audio_and_files(tmp_path: Path) -> None:
    lines = [
        "messages:",
        "  - {role: assistant, text: 'Which one, {{ text }}?'}",
        "  - {image: a.png}",
        "  - {role: assistant, audio: b.mp3}",
        "  - {resource: c.md}",
        "  - {resource: d}",
        "  - {resource: e}",
        "arguments: [{name: text}]",
    ]
    files = {"a.png": PNG, "b.mp3": b"ID3", "c.md": "# {{ text }}", "d": b"a\0b", "e": "text"}
    found = library(tmp_path, {"one.md": front(*lines, body="This."), **files})
    assert found.rendering("one").render({"text": "you"}) == (
        RenderedMessage("assistant", Text("Which one, you?")),
        RenderedMessage("user", EmbeddedFile("image", "a.png", "image/png", PNG)),
        RenderedMessage("assistant", EmbeddedFile("audio", "b.mp3", "audio/mpeg", b"ID3")),
        RenderedMessage("user", EmbeddedFile("resource", "c.md", "text/markdown", b"# {{ text }}")),
        RenderedMessage("user", EmbeddedFile("resource", "d", "application/octet-stream", b"a\0b")),
        RenderedMessage("user", EmbeddedFile("resource", "e", "text/plain", b"text")),
        RenderedMessage("user", Text("This.")),
    )


def test_embedded_files_are_limited_each_and_in_total(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "large.md": front("messages: [{resource: large.bin}]"),
        "many.md": front("messages: [{resource: a.bin}, {resource: a.bin}, {resource: a.bin}]"),
        "large.bin": bytes(4_000_001),
        "a.bin": bytes(3_000_000),
    }
    found = library(tmp_path, files)
    for name, reason in (("large", "more than 4,000,000 bytes"), ("many", "more than 8,000,000 bytes")):
        with pytest.raises(PromptError, match=reason) as caught:
            found.rendering(name).render({})
        assert caught.value.code == "too_large"


@pytest.mark.parametrize("placeholder", ["$0 ", "$ARGUMENTS "])
def test_filled_placeholders_are_limited_in_size(tmp_path: Path, placeholder: str) -> None:
    found = library(tmp_path, {".claude/commands/one.md": placeholder * 200})
    rendering = found.rendering("one")
    given = {one.name: "x" * 500_000 for one in rendering.prompt.arguments}
    tracemalloc.start()
    try:
        with pytest.raises(PromptError, match="more than 1,000,000 characters"):
            rendering.render(given)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_finding_prompts_loads_neither_jinja_nor_yaml(tmp_path: Path) -> None:
    library(tmp_path, {"one.md": front("name: one")})
    code = (
        "import sys; from pathlib import Path; from servers.prompts.library.libraries import Libraries\n"
        "found = Libraries([Path(sys.argv[1])]); found.scan(); "
        "print(found.names, *{'jinja2', 'yaml'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert run.stdout == "['one']\n"
