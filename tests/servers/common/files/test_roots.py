import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from servers.common.files import names
from servers.common.files.names import MAX_PATH, path_from_uri, uri
from servers.common.files.roots import Roots
from shared.coded_errors import PathError
from shared.program.files.entries import Place


@pytest.fixture
def roots(root):
    return Roots([root])


def code(roots, written):
    with pytest.raises(PathError) as caught:
        roots.place(written)
    return caught.value.code


def test_relative_paths_start_at_the_only_root(roots):
    paths = {
        "a/b": ("a", "b"),
        ".": (),
        "./a//b/.": ("a", "b"),
        "a/../b": ("b",),
        "a/b/../../c/": ("c",),
        "~x": ("~x",),
        "%2e%2e": ("%2e%2e",),
        "-rf": ("-rf",),
    }
    assert [roots.place(written) for written in paths] == [Place(0, parts, path) for path, parts in paths.items()]


def test_an_absolute_path_below_the_root_is_accepted(roots, root):
    assert roots.place(f"{root}/x/../y").parts == ("y",)
    assert roots.place(f"/{root}//y").parts == ("y",)


def test_paths_that_leave_the_root_are_refused(roots, root, outside):
    siblings = [f"{outside}/secret", f"{root}/../root_evil/secret", f"file://{root}/%2e%2e/root_evil/secret"]
    for written in ("..", "a/../..", "../root_evil", "/", "/etc/passwd", "//etc", "a/../../root/x", *siblings):
        assert code(roots, written) == "outside_roots", written


def test_the_error_is_the_same_for_existing_and_missing_outside_files(roots, outside):
    messages = set()
    for name in ("secret", "sacred"):
        with pytest.raises(PathError) as caught:
            roots.place(f"{outside}/{name}")
        messages.add(caught.value.reason + caught.value.suggestion)
    assert len(messages) == 1


TAILS = ["/a%2Fb", "/a%2fb", "/a%5Cb", "/%", "/%zz", "/a?b", "/a#b", "/\udcff", "/..%2f..%2fetc"]


def test_invalid_paths_and_ambiguous_uris_are_refused(roots, root):
    paths = ["", "a\0b", "a" * (MAX_PATH + 1), "\ud800", "file:///a%00b"]
    without_path = ["file://evil.example/etc", "file:relative", "file:", "file://", "file://a"]
    for written in (*paths, *without_path, *(f"file://{root}{tail}" for tail in TAILS)):
        assert code(roots, written) == "bad_path", written


def test_a_tilde_is_the_home_directory(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    assert Roots([Path("~")]).place("~/x").parts == ("x",)
    assert Roots([root]).place("~").parts == ()


def test_a_linked_root_accepts_its_own_and_the_canonical_spelling(tmp_path, root):
    (tmp_path / "link").symlink_to(root)
    roots = Roots([tmp_path / "link"])
    assert roots.paths == (root,)
    assert roots.place(f"{tmp_path}/link/x").parts == roots.place(f"{root}/x").parts == ("x",)


def test_paths_are_case_sensitive(roots, root):
    if os.path.normcase("A") == "A":
        assert code(roots, f"{root.parent}/ROOT/x") == "outside_roots"


def test_the_first_component_of_a_path_chooses_among_several_roots(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    roots = Roots([tmp_path / "one", tmp_path / "two"])
    assert roots.place("two/x") == Place(1, ("x",), "two/x")
    assert code(roots, "three/x") == code(roots, ".") == "bad_path"
    assert code(roots, "../two/x") == "outside_roots"


def test_paths_in_nested_roots_belong_to_the_inner_root(root):
    (root / "inner").mkdir()
    roots = Roots([root, root / "inner"])
    assert roots.place(f"{root}/inner/x").root_index == 1
    assert roots.place(f"{root}/x").root_index == 0


def refusal(check, place):
    with pytest.raises(PathError) as caught:
        check(place)
    return caught.value.code


def test_each_root_has_its_own_permission(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    roots = Roots([tmp_path / "one", tmp_path / "two"], [False, True])
    roots.require_writable(roots.place("two/x"))
    assert refusal(roots.require_writable, roots.place("one/x")) == "read_only"


@pytest.mark.parametrize("inner_writable", [True, False])
def test_the_permission_of_the_inner_of_two_nested_roots_applies(root, inner_writable):
    (root / "inner").mkdir()
    roots = Roots([root, root / "inner"], [not inner_writable, inner_writable])
    for place in (roots.place(f"{root}/inner/x"), Place(0, ("inner", "x"), "come by a link")):
        if inner_writable:
            roots.require_writable(place)
        else:
            assert refusal(roots.require_writable, place) == "read_only"


def test_one_directory_with_two_permissions_is_refused(root):
    assert len(Roots([root, root], [True, True]).paths) == 2
    (root.parent / "link").symlink_to(root)
    with pytest.raises(ValueError, match="both read-only and writable"):
        Roots([root, root.parent / "link"], [True, False])


def test_roots_and_directories_that_contain_one_are_not_movable(root):
    (root / "a" / "inner").mkdir(parents=True)
    roots = Roots([root, root / "a" / "inner"], True)
    for path in ("", "/a", "/a/inner"):
        assert refusal(roots.require_movable, roots.place(f"{root}{path}")) == "bad_path"
    for path in ("/a/in", "/b", "/a/inner/x"):
        roots.require_movable(roots.place(f"{root}{path}"))


def test_roots_must_be_directories(tmp_path):
    with pytest.raises(ValueError, match=r"directory"):
        Roots([])
    assert Roots([tmp_path / "none"]).paths == (tmp_path.resolve() / "none",)


def test_uris_below_the_root_are_decoded_once(roots, root):
    for uri_ in (
        *(f"file://{root}/a%20b", f"file://localhost{root}/a%20b", f"file:{root}/a%20b", f"FILE://{root}/a%20b"),
        *(f"file://{root}/%61 b", f"file://{root}/x/%2e%2E/a%20b", f"file://{root}/a b"),
    ):
        assert roots.place(uri_).parts == ("a b",), uri_
    # A URI is decoded once.
    assert roots.place(f"file://{root}/%252e%252e/x").parts == ("%2e%2e", "x")


@pytest.fixture
def on_macos(monkeypatch):
    """Make names behave as on macOS, where case may matter or not; a link imitates a name in another case."""
    monkeypatch.setattr(names, "_MACOS", True)  # nothing else imitates another system


def test_a_path_that_differs_from_a_root_in_case_is_compared_by_identity(on_macos, tmp_path):
    (tmp_path / "Docs").mkdir()
    roots = Roots([tmp_path / "Docs"])
    assert code(roots, f"{tmp_path}/docs/a") == "outside_roots"
    (tmp_path / "docs").symlink_to("Docs")
    assert roots.place(f"{tmp_path}/docs/a").parts == ("a",)
    assert code(roots, f"{tmp_path}/other/a") == "outside_roots"


def test_roots_that_differ_in_case_are_separate_if_case_matters(on_macos, tmp_path):
    for name in ("Docs", "docs"):
        (tmp_path / name).mkdir()
    roots = Roots([tmp_path / "Docs", tmp_path / "docs"], [True, False])
    assert [roots.place(f"{tmp_path}/{name}/a").root_index for name in ("Docs", "docs")] == [0, 1]


def test_the_permission_of_an_inner_root_applies_to_any_case(on_macos, tmp_path):
    (tmp_path / "Docs").mkdir()
    (tmp_path / "docs").symlink_to("Docs")
    roots = Roots([tmp_path, tmp_path / "Docs"], [True, False])
    place = Place(0, ("docs", "a"), "docs/a")
    with pytest.raises(PathError, match="in a read-only directory"):
        roots.require_writable(place)
    with pytest.raises(PathError, match="allowed directory itself"):
        roots.require_movable(Place(0, ("docs",), "docs"))


@given(st.binary(min_size=1).filter(lambda b: b"\0" not in b and b"\\" not in b))
def test_uris_preserve_the_bytes_of_a_path(name):
    path = "/" + os.fsdecode(name)
    assert path_from_uri(uri(path)) == path
    assert uri(path).isascii()


@settings(max_examples=60)
@given(st.text() | st.lists(st.sampled_from(["..", ".", "", "a", "root", "~", "\0", "%2e%2e"])).map("/".join))
@example("file://localhost")
@example("file:///\udcff")
def test_any_string_is_below_the_root_or_refused(roots, root, written):
    for text in (written, f"{root}/{written}", f"file://{written}", f"file://{root}/{written}"):
        try:
            path = roots.path(roots.place(text))
        except PathError:
            continue
        assert os.path.commonpath([os.path.normpath(path), root]) == str(root)
        assert ".." not in path.split("/")
