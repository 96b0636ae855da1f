"""Tables of benchmarks that are predicted, read back by our own readers."""

import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.formats.benchmark_output import nccl_tests_text, osu_text
from commsim.formats.measured import read_measured

STAR = "star:n_hosts=4,latency=1us"
SIZES = (4096, 2**20, 2**24)
COLLECTIVES = {
    "all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather", "reduce_scatter": "ring_reduce_scatter",
    "broadcast": "binomial_broadcast", "all_to_all": "pairwise_all_to_all", "gather": "direct_gather",
}  # fmt: skip


@pytest.mark.parametrize("operation", COLLECTIVES)
@pytest.mark.parametrize("write", [osu_text, nccl_tests_text], ids=["osu", "nccl-tests"])
def test_a_table_is_read_back_as_what_was_predicted(operation, write, tmp_path):
    results = [cs.predict(COLLECTIVES[operation], STAR, size, overhead="0us") for size in SIZES]
    (tmp_path / "t.txt").write_text(write(results))
    rows = [row for row in read_measured(tmp_path / "t.txt", n_ranks=4) if not row.in_place]
    assert [(row.operation, row.size, row.n_ranks) for row in rows] == [(operation, size, 4) for size in SIZES]
    # times have two digits after the point, in microseconds
    np.testing.assert_allclose([row.time for row in rows], [one.time for one in results], rtol=0, atol=0.0051e-6)


def test_a_fake_table_has_noise_that_its_seed_draws():
    table = cs.fake_nccl_tests(STAR, sizes=SIZES, noise=0.1, seed=1)
    assert table == cs.fake_nccl_tests(STAR, sizes=SIZES, noise=0.1, seed=1)
    assert table != cs.fake_nccl_tests(STAR, sizes=SIZES, noise=0.1, seed=2)
    assert "Reduce_scatter" in cs.fake_osu(STAR, operation="reduce_scatter", sizes=["1MiB"])
    with pytest.raises(InputError, match="noise must be 0 or more"):
        cs.fake_osu(STAR, noise=-1.0)


def test_noise_has_the_deviation_that_is_asked_for(tmp_path):
    sizes = [2**24] * 200
    (tmp_path / "t.txt").write_text(cs.fake_osu(STAR, "ring_all_reduce", sizes=sizes, noise=0.1))
    times = np.array([row.time for row in read_measured(tmp_path / "t.txt", n_ranks=4)])
    expected = cs.predict("ring_all_reduce", STAR, 2**24, overhead="0us").time
    deviation = float(np.std(np.log(times / expected)))
    assert abs(deviation - 0.1) < 4 * 0.1 / np.sqrt(2 * 200)  # four times the error of a deviation of 200 draws


def test_what_has_no_table_is_refused():
    one = cs.predict("ring_all_reduce", STAR, 4096, overhead="0us")
    with pytest.raises(InputError, match="of one operation"):
        osu_text([one, cs.predict("ring_all_gather", STAR, 4096, overhead="0us")])
    with pytest.raises(InputError, match="no result"):
        osu_text([])


def test_run_writes_the_table_of_osu(tmp_path, capsys):
    from commsim.cli import main

    line = ["run", "ring_all_reduce", "--topology", STAR, "-b", "1M", "-e", "2M", "--osu", str(tmp_path / "o.txt")]
    assert main(line) == 0
    assert [row.size for row in read_measured(tmp_path / "o.txt", n_ranks=4)] == [2**20, 2**21]
    assert main([*line, "double_tree_all_reduce"]) == 2
    assert "--osu is the table of one collective" in capsys.readouterr().err


def test_a_long_time_has_a_space_before_it(tmp_path):
    """All rows of a table can be read again, whatever the digits of a time."""
    path = tmp_path / "a.log"
    path.write_text(cs.fake_nccl_tests("star:n_hosts=4,bandwidth=1Gbps", sizes=["64MiB", "1GiB", "8GiB"]))
    assert [row.size for row in read_measured(path) if not row.in_place] == [2**26, 2**30, 2**33]
