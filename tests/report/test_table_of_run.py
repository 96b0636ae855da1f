import commsim as cs
from commsim.cli import main
from commsim.report.table_of_run import rows_of, table_of


def printed(capsys, *words):
    assert main(["run", *words]) == 0
    return capsys.readouterr().out


def test_what_packets_met_stands_in_a_line(capsys):
    star = ("--topology", "star:n_hosts=8,bandwidth=100Gbps", "-b", "1M", "-e", "1M")
    words = ("direct_all_to_all", *star, "--engine", "packet")
    line = [one for one in printed(capsys, *words).splitlines() if one.startswith("# packets of 1048576 B :")]
    assert len(line) == 1
    assert " 1792 packets, longest queue" in line[0]  # 8 x 7 of 32: none to a rank itself; what met none is left out
    assert "longest queue" in line[0]
    narrow = ("--topology", "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps")
    sizes = ("-b", "1M", "-e", "1M", "--engine", "packet", "--pause", "9kB:4kB")
    paused = printed(capsys, "direct_all_to_all", *narrow, *sizes)
    assert " 0 pauses (PFC)" not in paused
    assert "pauses (PFC)" in paused
    assert "pauses" not in printed(capsys, "direct_all_to_all", *star)


def test_the_busiest_links_of_the_fabric_are_shown_beside_those_inside_machines(capsys):
    words = ("direct_all_to_all", "--topology", "dgx-h100@star:machines=4", "-b", "16M", "-e", "16M", "-v")
    names = [line.split()[0] for line in printed(capsys, *words).split("links that need")[1].splitlines()[2:12]]
    between = [name for name in names if "switch0" in name.replace("nvswitch0", "")]
    assert len(between) == 5
    assert len(names) == 10


def test_a_transport_that_met_no_marks_is_said_to_make_no_difference(capsys):
    """Rings on a star meet no queue; senders to one host do."""
    star = ("--topology", "star:n_hosts=4", "-b", "1M", "-e", "1M", "--engine", "packet", "--transport")
    each = {"window": (), "dctcp": (), "dcqcn": ("--ack-every", "1")}
    ring = {name: printed(capsys, "ring_all_reduce", *star, name, *more) for name, more in each.items()}
    rows = {next(line for line in out.splitlines() if line.startswith("1048576")) for out in ring.values()}
    assert len(rows) == 1
    assert ["takes as long here as the transport window" in out for out in ring.values()] == [False, True, True]
    assert "takes as long here" not in printed(capsys, "ring_all_reduce", *star, "dcqcn")  # fewer acknowledgements
    assert "takes as long here" not in printed(capsys, "parameter_server", *star, "dctcp")
    assert "takes as long here" not in printed(capsys, "ring_all_reduce", *star, "swift")


def test_a_narrow_terminal_leaves_out_intervals_before_what_a_fault_costs():
    scenario = cs.scenario_of(
        "nccl_all_to_all", "dgx-h100@star:machines=2", fail=["link:m0.nic0:switch0"]
    )  # fmt: skip
    table = table_of(rows_of(cs.solve(scenario, ["64MiB"])), "")
    assert {"low(us)", "whole(us)", "faults_cost"} <= set(table.columns)
    assert list(table.least[-3:]) == ["high(us)", "low(us)", "whole(us)"]
    assert "faults_cost" not in table.least
