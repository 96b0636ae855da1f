"""Links that jobs share are named, with what each job sends over them."""

import numpy as np
import pytest

from commsim.cli import main
from commsim.core.errors import InputError
from commsim.jobs.table_of_jobs import parts_of_jobs, rows_of_jobs, shared_links
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.report.answer import Lines, Table

NETWORK = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,oversubscription=2"


def solved(tmp_path, first, second, **more):
    path = tmp_path / "jobs.toml"
    path.write_text(
        "".join(
            f'[[job]]\nname = "{name}"\ncollective = "ring_all_reduce"\nranks = {ranks}\nsize = "1MiB"\n'
            for name, ranks in (("a", first), ("b", second))
        )
    )
    return solve(scenario_of(None, NETWORK, jobs=path, **({"overhead": "0us"} | more)), [0.0])


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_the_shared_links_are_those_with_bytes_of_both_and_the_fullest_comes_first(tmp_path, engine):
    found = solved(tmp_path, [0, 1, 5, 6, 9], [10, 4, 13, 14], engine=engine)
    network, (a, b) = found.plan.network, found.results
    rows = {row["link"]: row for row in shared_links(found)}
    both = np.flatnonzero((a.link_bytes > 0) & (b.link_bytes > 0))
    assert set(rows) == {network.link_name(link) for link in both.tolist()} != set()
    for link in both.tolist():
        row = rows[network.link_name(link)]
        assert row["bytes"] == [a.link_bytes[link], b.link_bytes[link]]
        assert row["jobs"] == ["a", "b"]
        assert row["busy"] == pytest.approx(sum(row["bytes"]) / network.bandwidth[link] / max(a.time, b.time))
        assert row["busy"] <= 1
    needed = [row["needed_s"] for row in rows.values()]
    assert needed == sorted(needed, reverse=True)


def test_three_links_are_shown_and_all_with_v(tmp_path, capsys):
    """`-v` had no effect with `--jobs`, and no link was named."""
    found = solved(tmp_path, list(range(8)), list(range(15, 7, -1)), routing="spray")
    assert shared_links(found) == []
    assert "no link carries bytes of more than one job" in [str(part) for part in parts_of_jobs(found)][-1]
    found = solved(tmp_path, [0, 4, 8, 12], [1, 5, 9, 13], routing="spray")
    (short, whole) = (
        [part for part in parts_of_jobs(found, verbose) if isinstance(part, Table)][-1] for verbose in (False, True)
    )
    assert (len(short.rows), len(whole.rows)) == (3, len(shared_links(found)))
    assert "3 of 16 (-v: all)" in short.title
    flags = ["run", "--topology", NETWORK, "--jobs", str(tmp_path / "jobs.toml"), "--routing", "spray"]
    printed = []
    for more in ([], ["-v"]):
        assert main([*flags, *more]) == 0
        printed.append(capsys.readouterr().out.count("a, b"))
    assert printed == [3, 16]


def test_packets_of_jobs_tell_what_they_met_with_once(tmp_path):
    found = solved(tmp_path, [0, 4, 8, 12], [1, 5, 9, 13], engine="packet")
    lines = [line for part in parts_of_jobs(found) if isinstance(part, Lines) for line in part.texts]
    (met,) = [line for line in lines if line.startswith("# packets of all messages : ")]
    assert f"{found.results[1].counters['packets']:.0f} packets, " in met
    assert "longest queue" in met
    assert not any("packets of all" in str(part) for part in parts_of_jobs(solved(tmp_path, [0, 4], [1, 5])))


@pytest.mark.parametrize(("second", "said"), [("direct_all_to_all", "array (256 KiB to each rank)"),
                                              ("ring_all_reduce", "array (256 KiB to each rank) of a")])  # fmt: skip
def test_the_title_says_what_the_size_of_a_job_is_of(tmp_path, second, said):
    """`run` said whether 4 MiB of an all-to-all are a rank's or a pair's; `run --jobs` did not."""
    path = tmp_path / "jobs.toml"
    path.write_text(
        "".join(
            f'[[job]]\nname = "{name}"\ncollective = "{what}"\nranks = {ranks}\nsize = "1MiB"\n'
            for name, what, ranks in (("a", "direct_all_to_all", [0, 1, 2, 3]), ("b", second, [4, 5, 6, 7]))
        )
    )
    found = solve(scenario_of(None, "star:n_hosts=8", jobs=path, overhead="0us"), [0.0])
    (title,) = [part.title for part in parts_of_jobs(found) if isinstance(part, Table) and "engine" in part.title]
    assert title.endswith(said)


MACHINES = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=4"
JOB = '[[job]]\nname = "{}"\ncollective = "nccl"\n{}\nsize = "1MiB"\n'


def run_on_machines(tmp_path, *members):
    (tmp_path / "jobs.toml").write_text("".join(JOB.format("ab"[k], text) for k, text in enumerate(members)))
    return solve(scenario_of(None, MACHINES, jobs=tmp_path / "jobs.toml"), [0.0])


def test_machines_of_a_job_are_their_ranks(tmp_path):
    by_machine = run_on_machines(tmp_path, 'machines = "0,2"', "machines = [3, 1]")
    by_rank = run_on_machines(tmp_path, 'ranks = "0-7,16-23"', 'ranks = "24-31,8-15"')
    assert [one.time for one in by_machine.results] == [one.time for one in by_rank.results]
    assert [entry.ranks for entry in by_machine.plan.entries] == [entry.ranks for entry in by_rank.plan.entries]
    by_name = run_on_machines(tmp_path, 'machines = "m0,m2"', 'placement = "m3,m1"\noperation = "AllReduce"')
    assert [one.time for one in by_name.results] == [one.time for one in by_rank.results]
    assert [entry.ranks for entry in by_name.plan.entries] == [entry.ranks for entry in by_rank.plan.entries]


def test_the_table_counts_the_ranks_of_machines(tmp_path):
    """The column was 0 for a job that names its machines."""
    found = run_on_machines(tmp_path, 'machines = "0,2"', 'placement = "m[1,3].gpu[0-2]"')
    table = next(part for part in parts_of_jobs(found) if isinstance(part, Table))
    assert [row[table.columns.index("ranks")] for row in table.rows] == ["16", "6"]
    assert [row["ranks"] for row in rows_of_jobs(found)] == [[*range(8), *range(16, 24)], [8, 9, 10, 24, 25, 26]]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ('machines = "0,4"', "job a: machines are different numbers 0..3, got 4"),
        ("machines = [1, 1]", "job a: machines are different numbers"),
        ('machines = "m0,m9"', "placement: .* has no 'm9'; machines are m0 to m3"),
        ('placement = "spread"', "job a: placement must name machines, such as m0,m2, got 'spread'"),
        (
            'machines = "0"\noperation = "alltoal"',
            "unknown operation 'alltoal'; did you mean all_to_all",
        ),
        ('machines = "0."', "machines such as '0-7,12'"),
        ('machines = "0"\nranks = "0-7"', "machines is given beside ranks"),
    ],
)
def test_machines_that_are_not_there_are_refused(tmp_path, members, message):
    with pytest.raises(InputError, match=message):
        run_on_machines(tmp_path, members)


def test_each_host_is_a_machine(tmp_path):
    def one_job(members):
        (tmp_path / "jobs.toml").write_text(JOB.format("a", members).replace("nccl", "ring_all_reduce"))
        return solve(scenario_of(None, NETWORK, jobs=tmp_path / "jobs.toml"), [0.0])

    assert one_job('machines = "0,2"').plan.entries[0].ranks == (0, 2)
    with pytest.raises(InputError, match=r"machines are different numbers 0\.\.15, got 99"):
        one_job("machines = [99]")


def test_ranks_that_are_in_several_jobs_are_said(tmp_path):
    """The GPUs of one machine computed for two jobs, and nothing said so."""
    found = run_on_machines(tmp_path, 'machines = "0,1"', 'machines = "1,2"')
    (told,) = (one for one in found.remarks if one.code == "ranks-of-several")
    assert (told.text, told.needed) == ("8 ranks in several jobs, such as rank 8 in a and b", True)
    apart = run_on_machines(tmp_path, 'machines = "0,1"', 'machines = "2,3"')
    on_hosts = solved(tmp_path, [0, 1], [1, 2])
    assert "ranks-of-several" not in {one.code for found in (apart, on_hosts) for one in found.remarks}


def test_times_with_an_interval_stand_beside_its_ends(tmp_path):
    """The remark said what lies between low and high, and the table had neither."""
    found = run_on_machines(tmp_path, 'machines = "0,2"', 'machines = "1,3"')
    table = next(part for part in parts_of_jobs(found) if isinstance(part, Table))
    low, high = table.columns.index("low(us)"), table.columns.index("high(us)")
    for row, result in zip(table.rows, found.results, strict=True):
        assert [float(row[low]), float(row[high])] == pytest.approx([1e6 * end for end in result.interval], rel=1e-3)
    assert "low(us)" not in parts_of_jobs(solved(tmp_path, [0, 1], [4, 5]))[0].columns
