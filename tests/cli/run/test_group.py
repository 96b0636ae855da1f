STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


def test_each_group_has_a_row(commsim):
    flags = ("run", "--topology", STAR, "-b", "1M", "-e", "1M", "--group", "0,2,4,6", "--group", "1,3")
    tree = commsim.results(*flags)
    assert [r["n_ranks"] for r in tree["results"]] == [4, 2]
    rows = [line.split() for line in commsim.out.splitlines() if line.split()[1:2] == ["1048576"]]
    assert [row[0] for row in rows] == ["0,2,4,6", "1,3"]


def test_bad_groups_get_one_line(commsim):
    run = ("run", "--topology", STAR)
    assert "--group must be ranks such as 0,2,4,6, got '0,x'" in commsim.refuses(*run, "--group", "0,x")
    assert "different ranks 0..7, got [0, 9]" in commsim.refuses(*run, "--group", "0,9")
    assert "goes with --collective" in commsim.refuses(*run, "--group", "0,1", "--operation", "all_reduce")
    assert "--start-jitter" in commsim.refuses(*run, "--group", "0,1", "--start-jitter", "1ms")
