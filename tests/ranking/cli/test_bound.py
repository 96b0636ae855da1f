import pytest

from collectives import COLLECTIVES
from collectives.dense.double_tree import double_tree_pieces

pytest.importorskip("scipy")
RACKS = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=1GB/s,latency=0us"


def test_every_algorithm_stands_beside_the_bound(commsim):
    asked = ("--topology", RACKS, "--operation", "all_reduce", "--overhead", "0us")
    tree = commsim.results("bound", *asked, "-b", "1M", "-e", "4M", "-f", "4", "-v")
    rows = tree["results"]
    assert {row["size_B"] for row in rows} == {2**20, 2**22}
    assert all(row["times_bound"] >= 1 - 1e-9 for row in rows)
    best = min((row for row in rows if row["size_B"] == 2**22), key=lambda row: row["time_s"])
    assert best["times_bound"] == pytest.approx(1.0, rel=1e-6)
    assert {bound["anywhere"] for bound in tree["bounds"]} == {False, True}
    assert "1.000x" in commsim.out
    assert "# skipped, no aggregating switch: atp, flare, iswitch," in commsim.out
    assert "switchml (name one to assume it)" in commsim.out
    assert "parameter_server" in {row["algorithm"] for row in rows}  # on the ranks' hosts, as no other is there


def test_the_best_of_several_sizes_stand_above_the_bounds(commsim):
    """`--size` took one size, and the table that `--best` asks for stood below that of the bounds."""
    sizes = ("--operation", "all_reduce", "--best", "--size", "1MiB,64KiB")
    tree = commsim.results("bound", "--topology", RACKS, *sizes)
    assert [row["size_B"] for row in tree["results"]] == [2**16, 2**20]
    title, columns, first, second, *below = commsim.out.splitlines()
    assert "4 ranks" not in title
    assert "the fastest algorithm of each size, engine flow" in title
    assert "times_bound" in columns
    assert [line.split()[:2] for line in (first, second)] == [
        [str(row["size_B"]), row["algorithm"]] for row in tree["results"]
    ]
    assert any("lower bound on the time of any schedule" in line for line in below)
    assert "given twice; several are one list, SIZE[,SIZE...]" in commsim.refuses("bound", *sizes, "--size", "1MiB")


def test_an_algorithm_that_is_too_much_is_left_out_unless_it_is_asked_for(commsim, monkeypatch):
    monkeypatch.setattr("commsim.core.data_order.dependencies.MAX_DEPENDENCIES", 80)
    racks = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=1Gbps,latency=1us"
    argv = ("bound", "--topology", racks, "--operation", "all_reduce")
    said = commsim(*argv, "-v")
    assert said.code == 0
    pieces = double_tree_pieces(8, 32 * 2**20)  # of each half, which crosses 7 links up and 7 down
    refused = f"double_tree_all_reduce: its {2 * 14 * pieces} transfers wait for each other in more"
    assert f"# skipped: {refused}" in said.out
    assert "ring_all_reduce" in said.out.split("engine flow")[1]
    assert commsim(*argv, "--algorithm", "double_tree_all_reduce", "-v").code == 2


def test_the_bound_alone_needs_no_algorithm(commsim):
    tree = commsim.results(
        "bound", "--topology", RACKS, "--operation", "broadcast", "--algorithm", "none", "--root", "3"
    )
    assert tree["results"] == []
    assert "the capacity out of rank h3" in commsim.out


def test_a_barrier_has_no_bytes(commsim):
    words = ("bound", "--topology", "star:n_hosts=4", "--operation", "barrier", "--overhead", "0us", "-v")
    tree = commsim.results(*words)
    assert tree["bounds"][0]["bound_s"] == pytest.approx(1e-6)
    assert "a barrier carries no bytes" not in commsim.out  # nobody asked for some
    assert commsim.results(*words, "--size", "1MiB")["bounds"] == tree["bounds"]
    assert "a barrier carries no bytes" in commsim.out


def test_run_says_how_far_a_collective_is_from_it(commsim):
    assert (
        commsim(
            "run", "--overhead", "0us", "--topology", RACKS, "--collective", "ring_all_reduce", "--bound", "-v"
        ).code
        == 0
    )
    assert "# bound: 32 MiB: at least 50.33 ms; the time is 1.000 times the bound" in commsim.out
    assert "(the capacity out of all 4 ranks together)" in commsim.out
    star = ("run", "byteps:n_servers=2", "--topology", "star:n_hosts=10,bandwidth=100Gbps", "--ranks", "8")
    assert commsim(*star, "--size", "100MB", "--bound", "-v").code == 0
    assert "(the capacity out of and into all 8 ranks and 2 others together)" in commsim.out
    assert commsim("run", "--overhead", "0us", "switchml", *star[2:], "--size", "100MB", "--bound", "-v").code == 0
    assert "at least 8.001 ms; the time is" in commsim.out
    assert "(the capacity out of rank h0), where any switch and host may add" in commsim.out


def test_trees_are_said_to_attain_the_bound_of_ranks_only(commsim):
    found = commsim("bound", "--topology", "star:n_hosts=4", "--operation", "all_reduce", "-b", "1M", "-e", "1M", "-v")
    assert [line for line in found.out.splitlines() if "attained by" in line] == [
        "# bound of ranks, large sizes: attained by trees from commsim synthesize"
    ]


def test_an_algorithm_of_one_s_own_stands_there_once(commsim, tmp_path, forgets):
    forgets(COLLECTIVES)
    path = tmp_path / "mine.py"
    path.write_text(
        "from collectives import collective\nfrom collectives.dense.ring import ring_all_gather\n"
        "@collective('all_gather')\ndef mine(n_ranks: int):\n    'A ring.'\n    return ring_all_gather(n_ranks)\n"
    )
    given = ("--topology", "star:n_hosts=4", "--operation", "all_gather", "-b", "1M", "-e", "1M")
    rows = commsim.results("bound", *given, "--collective", path)["results"]
    names = [row["algorithm"] for row in rows]
    assert str(path) in names
    assert "mine" not in names


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bound", "--operation", "allreduced"], "no 'allreduced'; did you mean all_reduce"),
        (["bound", "--operation", "all_reduce", "--algorithm", "ring_all_gather"], "implements all_gather"),
        (["bound", "--operation", "all_reduce", "--ranks", "9"], "ranks must be 1..4"),
        (["bound", "--operation", "broadcast", "--algorithm", "none", "--root", "9"], "root must be a rank 0..3"),
        (["bound", "--operation", "all_reduce", "--engine", "magic"], "unknown engine 'magic'"),
        (["run", "--operation", "all_reduce", "--bound"], "commsim bound ranks the algorithms"),
        (["run", "--collective", "topk_a:density=0.1", "--bound"], "bounds are of dense data"),
    ],
)
def test_what_has_no_bound_is_refused(commsim, argv, message):
    assert message in commsim.refuses(*argv, "--topology", RACKS)


SLOW_HOST = ("--topology", "star:n_hosts=8,bandwidth=1GB/s,latency=0us", "--operation", "all_reduce")


def test_faults_cost_what_the_slow_port_must_carry_more(commsim, tmp_path):
    argv = (
        "bound",
        *SLOW_HOST,
        "--scale",
        "link:h3:*=0.5",
        "-b",
        "64M",
        "-e",
        "64M",
        "--algorithm",
        "ring_all_reduce",
        "--overhead",
        "0us",
    )
    tree = commsim.results(*argv)
    (row,) = tree["results"]
    size = 64 * 2**20
    # A ring sends 2 * 7/8 of the data through every port, the slow one included; none needs more than its own bytes.
    assert row["whole_s"] == pytest.approx(2 * 7 / 8 * size / 1e9)
    assert row["faults_cost"] == pytest.approx(2)
    assert row["bound_s"] == pytest.approx(size / 0.5e9)
    assert row["times_bound"] == pytest.approx(1.75)
    assert "faults_cost" in commsim.out


def test_without_faults_there_is_nothing_to_compare_with(commsim):
    tree = commsim.results("bound", *SLOW_HOST, "-b", "1M", "-e", "1M", "--algorithm", "ring_all_reduce")
    assert "whole_s" not in tree["results"][0]
    assert "faults_cost" not in commsim.out


def test_drawn_faults_are_named_and_drawn_by_the_seed(commsim):
    argv = (
        "bound",
        "--topology",
        "fat_tree:k=4",
        "--operation",
        "all_gather",
        "--fail",
        "links:2",
        "--algorithm",
        "none",
    )
    first, again, other = (commsim(*argv, "--seed", seed, "-v").out for seed in ("1", "1", "2"))
    assert "# fail links:2: 2 failed: " in first
    assert first == again != other


def test_a_schedule_s_file_stands_beside_the_bound(commsim, tmp_path):
    path = str(tmp_path / "ring.npz")
    assert commsim("schedule", "save", "ring_all_reduce", "--ranks", "8", "-o", path).code == 0
    argv = ("bound", *SLOW_HOST, "-b", "1M", "-e", "1M", "--algorithm", "ring_all_reduce", "--collective", path)
    ring, file = commsim.results(*argv)["results"]
    assert ring["time_s"] == pytest.approx(file["time_s"])
    assert commsim("bound", "--topology", "star:n_hosts=8", "--operation", "all_gather", "--collective", path).code == 2


def test_the_title_says_what_a_size_is_of(commsim):
    """The 1 MiB of an all-gather were taken for those of a rank, whose bound is 16 times as long."""
    asked = ["--topology", "torus:dims=4x4", "-b", "1M", "-e", "1M"]
    commsim("bound", *asked, "--operation", "all_gather")
    assert commsim.out.count("size of all ranks together (64 KiB a rank)") == 1
    commsim("run", *asked, "--operation", "reduce_scatter")
    assert commsim.out.count("size of the whole array (64 KiB to each rank)") == 1
    commsim("run", "--overhead", "0us", *asked[:2], "-b", "1M", "-e", "2M", "--collective", "direct_all_to_all")
    assert commsim.out.count("size of a rank's array (1/16 to each rank)") == 1
    commsim("run", "--overhead", "0us", *asked, "--collective", "ring_all_reduce")
    assert "size of" not in commsim.out


def test_a_bound_takes_the_costs_of_messages_and_says_them(commsim):
    line = ("bound", "--topology", "star:n_hosts=4", "--operation", "all_gather", "-b", "1K", "-e", "1K")
    free = commsim.results(*line, "--algorithm", "ring_all_gather", "--overhead", "0us")
    assert "engine flow, no overhead per message" in commsim.out
    costly = commsim.results(*line, "--algorithm", "ring_all_gather", "--overhead", "5us")
    assert "engine flow, 5 us of overhead per message" in commsim.out
    assert costly["results"][0]["time_s"] == pytest.approx(free["results"][0]["time_s"] + 3 * 5e-6)  # three steps
    assert costly["bounds"][0]["bound_s"] >= 2 * 5e-6  # to tell three others one rank sends two messages in a row


@pytest.mark.parametrize("costs", [(), ("--overhead", "0us"), ("--overhead", "3us")])
def test_bound_and_run_rank_alike(commsim, costs):
    """`bound` had parameter servers first at every size, without overhead; `run` had halving-doubling, with 1 us."""
    asked = ("--topology", "star:n_hosts=8", "--operation", "all_reduce", "-b", "4K", "-e", "4M", "-f", "1024", *costs)
    ranked = {one["size_B"]: one["algorithms"] for one in commsim.results("run", *asked, "-v")["ranking"]}
    rows = commsim.results("bound", *asked, "-v")["results"]
    for size, order in ranked.items():
        beside = {row["algorithm"]: row["time_s"] for row in rows if row["size_B"] == size}
        assert min(beside, key=beside.__getitem__) == order[0]["algorithm"]
        assert beside == {one["algorithm"]: one["time_s"] for one in order}
    bare = commsim.results("bound", *asked, "--algorithm", "none", "-v")
    assert costs or bare["bounds"] == commsim.results("bound", *asked, "-v")["bounds"]


def test_the_fastest_of_each_size_alone(commsim):
    """`bound` of 21 sizes had 99 rows and more."""
    asked = ("bound", "--topology", "star:n_hosts=4", "--operation", "all_reduce", "-b", "1K", "-e", "16M", "-f", "128")
    every, best = (commsim.results(*asked, *more)["results"] for more in ((), ("--best",)))
    assert [row["size_B"] for row in best] == [2**10, 2**17, 2**24]
    of_size = {one["size_B"]: [row for row in every if row["size_B"] == one["size_B"]] for one in best}
    assert best == [rows[0] for rows in of_size.values()]
    for rows in of_size.values():  # those whose times differ by rounding stand in the order of their names
        least = min(row["time_s"] for row in rows)
        equal = [row["algorithm"] for row in rows if row["time_s"] <= least * (1 + 1e-9)]
        assert [row["algorithm"] for row in rows[: len(equal)]] == sorted(equal)


def test_faults_cost_the_ratio_of_medians_over_the_same_hashes(commsim):
    """With one hash `bound --fail switch:spine0` had 0.960x: routes are hashed anew over what is left."""
    fabric = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=2"
    asked = ("bound", "--topology", fabric, "--operation", "all_reduce", "--size", "16M")
    whole = {row["algorithm"]: row["time_s"] for row in commsim.results(*asked)["results"]}
    rows = commsim.results(*asked, "--fail", "switch:spine0")["results"]
    assert {row["algorithm"]: row["whole_s"] for row in rows}.items() <= whole.items()
    assert "ECMP, which another" not in commsim.out
