"""What is exported and imported again sends every byte, and says with which size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commsim as cs
from commsim.cli import main
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

COLLECTIVES = (
    "ring_all_reduce", "direct_all_to_all", "binomial_broadcast", "ring_all_gather", "halving_doubling_all_reduce",
    "multi_ring_all_reduce:n_channels=2", "double_tree_all_reduce",
)  # fmt: skip


def there_and_back(folder, collective, n_ranks, size, suffix):
    """Return the file of the schedule, and the size with which it was read."""
    file, again = folder / f"there.{suffix}", folder / "back.npz"
    convert(collective, str(file), Context(n_ranks=n_ranks, size=size))
    source = file if suffix == "goal" else folder / f"there.0.{suffix}"
    said = convert(str(source), str(again), Context())
    (own,) = (float(text.split()[-1]) for text in said if "sizes of the file" in text)
    return str(again), own


@pytest.mark.parametrize("suffix", ["goal", "et"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_goal_and_chakra_keep_every_byte(tmp_path_factory, suffix, data):
    collective, n = data.draw(st.sampled_from(COLLECTIVES)), data.draw(st.integers(2, 9))
    size = data.draw(st.integers(1000, 20_000))
    path, own = there_and_back(tmp_path_factory.mktemp("trip"), collective, n, size, suffix)
    star = f"star:n_hosts={n},bandwidth=100Gbps,latency=1us"
    ours, back = cs.predict(collective, star, size, overhead="0us"), cs.predict(path, star, own, overhead="0us")
    assert back.bytes_on_wire == pytest.approx(ours.bytes_on_wire, abs=0.5)
    assert back.time == pytest.approx(ours.time, rel=2e-3)


@pytest.mark.parametrize("suffix", ["goal", "et"])
def test_a_rank_gathers_as_many_bytes_as_were_asked_for(tmp_path, suffix):
    """Three messages of 4096/3 bytes were 1365 each."""
    path, own = there_and_back(tmp_path, "ring_all_gather", 3, 4096, suffix)
    assert cs.predict(path, "star:n_hosts=3", own, overhead="0us").bytes_on_wire == 2 * 4096


def test_an_imported_schedule_says_when_it_runs_at_another_size(tmp_path, capsys):
    path, own = there_and_back(tmp_path, "ring_all_reduce", 7, 4096, "goal")
    told = f"only with -b {own:.0f} -e {own:.0f}"
    remarks = [
        " ".join(map(str, solve(scenario_of(path, "star:n_hosts=7", overhead="0us"), [size]).remarks))
        for size in (own, 2 * own)
    ]
    assert [told in remark for remark in remarks] == [False, True]
    jobs = tmp_path / "jobs.toml"
    for size in (own, 2 * own):
        jobs.write_text(
            f'[[job]]\ncollective = {path!r}\nranks = "0-6"\nsize = "{size:.0f}B"\n'
            '[[job]]\ncollective = "ring_all_reduce"\nranks = "7-8"\nsize = "1MiB"\n'
        )
        assert main(["run", "--topology", "star:n_hosts=9", "--jobs", str(jobs)]) == 0
        assert (told in capsys.readouterr().out) == (size != own)


def test_a_schedule_that_is_exported_again_has_its_own_size(tmp_path):
    path, _ = there_and_back(tmp_path, "ring_all_reduce", 7, 4096, "goal")
    convert(path, str(tmp_path / "again.goal"), Context())
    sent = [
        [line.split()[2] for line in (tmp_path / name).read_text().splitlines() if "send" in line]
        for name in ("there.goal", "again.goal")
    ]
    assert sent[0] == sent[1]
