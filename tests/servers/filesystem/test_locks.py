import threading

import pytest

from servers.filesystem.writing import locks
from servers.filesystem.writing.locks import locked


@pytest.fixture
def entry(files, at):
    with files.locate(at("file")) as found:
        yield found


def test_the_second_waits_for_the_first(entry):
    entered = threading.Event()

    def second():
        with locked(entry):
            entered.set()

    thread = threading.Thread(target=second)
    with locked(entry):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(30)
    assert entered.is_set()


def test_one_name_twice_does_not_deadlock(entry):
    with locked(entry, entry):
        pass


def test_nothing_is_kept(entry):
    with pytest.raises(KeyError), locked(entry):
        raise KeyError
    assert locks._locks == {}
