"""Changes between two texts of a page."""

from servers.fetch.pages.changes import find_changes

OLD = "# Prices\n\nUpdated in May.\n\n## Bread\n\n- rye: 4\n- wheat: 3\n\n## Cake\n\nNone.\n"


def test_changed_lines_follow_their_start_index_and_headings() -> None:
    new = OLD.replace("rye: 4", "rye: 5").replace("None.", "None.\n\nSoon.")
    parts = find_changes(OLD, new, 1_000)
    assert parts is not None
    assert parts.text == (
        f"[start_index {new.index('- rye')}] Prices > Bread\n- - rye: 4\n+ - rye: 5\n\n"
        f"[start_index {new.index('Soon')}] Prices > Cake\n+ Soon."
    )
    assert (parts.shown, parts.total) == (2, 2)


def test_removed_lines_are_listed_at_their_old_position() -> None:
    parts = find_changes(OLD, OLD.replace("- wheat: 3\n", ""), 1_000)
    assert parts is not None
    assert parts.text.endswith("\n- - wheat: 3")


def test_white_space_is_not_a_change() -> None:
    parts = find_changes(OLD, OLD.replace("\n\n", "\n\n\n").replace("May.", "May.  "), 1_000)
    assert parts is not None
    assert parts.total == 0


def test_changes_that_do_not_fit_are_counted() -> None:
    parts = find_changes("a\nb\nc\nd\ne\n", "1\nb\n2\nd\n3\n", 60)
    assert parts is not None
    assert (parts.shown, parts.total) == (2, 3)


def test_a_long_page_is_not_compared_if_every_line_changed() -> None:
    long = "".join(f"{number}\n" for number in range(1_600))
    assert find_changes(long, long.replace("\n", " new\n"), 1_000) is None
    parts = find_changes(long, f"first\n{long}", 1_000)
    assert parts is not None
    assert parts.total == 1


def test_an_empty_page_is_compared() -> None:
    parts = find_changes("gone\n", "", 1_000)
    assert parts is not None
    assert parts.text == "[start_index 0]\n- gone"
