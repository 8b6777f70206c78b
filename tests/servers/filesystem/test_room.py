from servers.filesystem.finding.room import Room


def test_what_fits_is_taken_and_what_does_not_is_left():
    room = Room(20)
    assert room.take(4, "12345678")
    assert not room.take(7)
    assert room.take(6)
    assert not room.take(1)


def test_a_text_counts_as_json():
    for text, size in (("é\n", 6), ('"', 4)):
        room = Room(size + 1)
        assert room.take(0, text)
        assert room.take(1)
        assert not room.take(1)


def test_the_first_fits_always_since_there_would_be_no_going_on():
    room = Room(1)
    assert room.take(100)
    assert not room.take(0)
