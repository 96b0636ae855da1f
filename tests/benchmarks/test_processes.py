"""Programs as processes."""

import sys
from pathlib import Path

import pytest

from benchmarks.processes import in_turns, machine_kind, run
from commsim.core.errors import BackendError


def test_a_process_says_what_it_took_of_the_processor_and_what_it_printed_last() -> None:
    done = run([sys.executable, "-c", 'sum(range(3_000_000)); print(\'first\'); print(\'{"n": 3, "s": "text"}\')'])
    assert done.cpu > 0.01
    assert done.number("n") == 3
    assert done.said["s"] == "text"


def test_a_process_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(BackendError, match="ended with 3: no such thing"):
        run([sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"])


def test_a_process_that_says_nothing_is_an_error() -> None:
    with pytest.raises(BackendError, match="no message"):
        run([sys.executable, "-c", ""])


@pytest.mark.slow
def test_a_process_ends_at_its_limit_of_processor_time_and_of_memory() -> None:
    with pytest.raises(BackendError, match="more than 1 s of processor time"):
        run([sys.executable, "-c", "while True: pass"], limit=1)
    with pytest.raises(BackendError, match="MemoryError"):
        run([sys.executable, "-c", "bytearray(10**9)"], memory=5e8)


def test_commands_take_turns_and_every_second_turn_is_reversed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = [
        [sys.executable, "-c", f"open({str(log)!r}, 'a').write('{name}'); print('{{\"name\": \"{name}\"}}')"]
        for name in "ab"
    ]
    turns = list(in_turns(commands, 3))
    assert log.read_text() == "abbaab"
    assert [[one.said["name"] for one in turn] for turn in turns] == [["a", "b"]] * 3


def test_the_kind_of_machine_does_not_name_the_machine() -> None:
    import platform

    assert "processors" in machine_kind()
    assert platform.node() not in machine_kind()
