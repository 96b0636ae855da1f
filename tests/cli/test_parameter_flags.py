"""A parameter that is given as a flag is answered with where it belongs."""

import pytest


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("omnireduce --topology star:n_hosts=8 --density 0.01", "omnireduce:density=0.01"),
        ("omnireduce:n_aggregators=2 --topology star:n_hosts=8 --density=0.01",
         "omnireduce:n_aggregators=2,density=0.01"),
        ("switchml --topology star:n_hosts=8 --pool-size 4", "switchml:pool_size=4"),
        ("ring_all_reduce --topology fat_tree --k 4", "fat_tree:k=4"),
        ("nccl --topology=dgx-h100@leaf_spine:machines=8 --oversubscription 2",
         "dgx-h100@leaf_spine:machines=8,oversubscription=2"),
        ("nccl --topology hgx-h100:sharp=on@star:machines=8 --n-gpus 4", "hgx-h100:sharp=on,n_gpus=4@star:machines=8"),
        ("ring_all_reduce --topology star:n_hosts=4 --bandwidth", "star:n_hosts=4,bandwidth=VALUE"),
    ],
)  # fmt: skip
def test_a_parameter_given_as_a_flag_is_shown_where_it_belongs(commsim, line, written):
    assert f"; it is a parameter: {written} (see" in commsim.refuses("run", *line.split())


@pytest.mark.parametrize("flag", ["--no-such", "--density=much", "--hashez"])
def test_what_nothing_of_the_line_has_is_not_called_a_parameter(commsim, flag):
    refused = commsim.refuses("run", "omnireduce", "--topology", "star:n_hosts=8", flag)
    assert "unrecognized arguments" in refused
    assert "parameter" not in refused
