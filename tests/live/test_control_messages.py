import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from switch_model.live.control_messages import LineReader, read_line, write_line
from switch_model.live.slot_ranges import first_fit, free_ranges


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=4)), st.data())
def test_messages_come_out_as_they_went_in_however_the_bytes_are_cut(
    messages: list[object], data: st.DataObject
) -> None:
    stream, reader, got = b"".join(map(write_line, messages)), LineReader(4096), []
    while stream:
        n = data.draw(st.integers(1, len(stream)))
        got += map(read_line, reader.lines(stream[:n]))
        stream = stream[n:]
    assert got == messages


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b"7", b"\xff\xfe", b"[" * 3000, b'{"a":1,"a":2}', b'{"a":NaN}', b"{}" + b" " * 4096, b"x" * 4097],
)
def test_a_line_that_is_no_object_or_too_long_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match=r"a line has at most 4096 bytes|expected a JSON object on a line"):
        list(map(read_line, LineReader(4096).lines(line + b"\n")))


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    reader = LineReader(100)
    assert reader.lines(b"a" * 100) == []
    with pytest.raises(InputError, match="at most 100 bytes"):
        reader.lines(b"a")


def test_free_slots_are_what_lies_between_the_taken_ones() -> None:
    assert free_ranges([(5, 3), (0, 2)], 10) == [(2, 3), (8, 2)]
    assert free_ranges([(0, 10)], 10) == []
    assert first_fit([(5, 3), (0, 2)], 10, 2) == (2, 2)
    assert first_fit([(5, 3), (0, 4)], 10, 2) == (8, 2)
    assert first_fit([], 1000, None) == (0, 128)
