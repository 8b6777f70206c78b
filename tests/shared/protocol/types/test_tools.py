from shared.protocol.types.tools import named_tools


def test_malformed_tools_in_a_list_are_left_out() -> None:
    assert [*named_tools({"tools": [{"name": "a", "title": "A"}, {"name": 1}, "b", {}]})] == [
        ("a", {"name": "a", "title": "A"})
    ]
    assert not [*named_tools({"tools": "a"})]
    assert not [*named_tools({})]
