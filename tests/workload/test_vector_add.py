import pytest

from commsim.core.errors import InputError
from commsim.workload.backward_trace import read_vector_add


def written(folder, text):
    path = folder / "add.csv"
    path.write_text(text)
    return path


def test_between_sizes_lines_are_straight_below_them_flat_and_above_them_the_rate_stays(tmp_path):
    add = read_vector_add(written(tmp_path, "nbytes,seconds\n100,1e-5\n300,2e-5\n"))
    assert [add(n) for n in (0, 100, 200, 300, 900)] == pytest.approx([1e-5, 1e-5, 1.5e-5, 2e-5, 6e-5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 1: lacks the columns nbytes, seconds; got a, b"),
        ("", "is empty"),
        ("nbytes,seconds\n", "holds no measurement"),
        ("nbytes,seconds\n8,1\n8,2\n", "rise from line to line"),
        ("nbytes,seconds\n8,x\n", "line 2: seconds must be a number, got 'x'"),
        ("nbytes,seconds\n8\n", "line 2: 2 cells are required, got 1"),
        ("nbytes,seconds\n0,1\n", "nbytes must be above 0"),
        ("nbytes,seconds\n1,inf\n", "line 2"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_vector_add(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_vector_add(tmp_path / "gone.csv")
