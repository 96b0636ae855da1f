"""Traces of known programs on another network, with more ranks: equal to the times of the program."""

import pytest
from traced_programs import Program, data_parallel, group

from commsim import predict
from commsim.core.errors import InputError
from commsim.profiles.exposed import waits_of
from commsim.profiles.growth import growing_groups, grown
from commsim.profiles.read_ranks import traced_graph
from commsim.training.cost_by_simulation import network_costs
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.task_graph import simulate_graph


def retimed(files, network, factor=1, grow=(), kernels=None, sizes=()):
    notes = []
    traced, _ = traced_graph(files, kernels, sizes, None, notes)
    growing = growing_groups(traced, grow)[0] if factor > 1 else ()
    whole = grown(traced, growing, factor)
    costs = network_costs(network)
    timeline = simulate_graph(whole.graph, costs, ExchangesOnLinks(costs))
    return whole, timeline, waits_of(whole, timeline)


@pytest.mark.parametrize("launches", [False, True])
@pytest.mark.parametrize("rate", ["10Gbps", "400Gbps"])
@pytest.mark.parametrize("times", [(0.02, 0.03), (0.001, 0.0005)])
def test_a_step_of_8_ranks_takes_with_32_what_the_program_takes(tmp_path, launches, rate, times):
    computes = [(0.004 + 0.0001 * rank, 0.006 - 0.0001 * rank, 0.001) for rank in range(8)]
    files = [
        data_parallel(r, 8, computes[r], times, launches=launches).write(tmp_path / f"r{r}.json") for r in range(8)
    ]
    network = f"star:n_hosts=32,bandwidth={rate}"
    whole, timeline, waits = retimed(files, network, factor=4)
    first, second = (predict("ring_all_reduce", network, size, n_ranks=32).time for size in (8e6, 4e6))
    begins = max(c[0] for c in computes)
    ends = begins + first
    ends = max(ends, max(c[0] + c[1] for c in computes)) + second
    assert timeline.iteration_time == pytest.approx(ends + 0.001, 1e-6)
    assert whole.world == 32
    own = computes[waits.rank]
    assert waits.compute == pytest.approx(sum(own), 1e-6)
    assert waits.exposed == pytest.approx(ends - own[0] - own[1], 1e-6)


def test_a_profile_of_one_rank_stands_for_all_and_other_groups_are_repeated(tmp_path):
    groups = [group("0", "default_pg", range(8)), group("1", "mesh_tp", (0, 1)), group("5", "mesh_dp", (0, 2, 4, 6))]
    program = Program(0, 8, groups)
    for number in range(3):
        program.step(number)
        program.compute(0.002)
        program.call("tp", "all_reduce", 2e6, "1", 0.001, stream=7)
        program.wait("tp")
        program.compute(0.003)
        program.call("dp", "reduce_scatter", 8e6, "5", 0.001)
        program.wait("dp")
        program.update(0.001)
    program.step(3)
    whole, timeline, waits = retimed([program.write(tmp_path / "rank0.json")], "star:n_hosts=16,bandwidth=10Gbps", 2)
    tasks = [task for task in whole.graph.tasks if task.operation]
    assert [t.group for t in tasks if t.operation == "all_reduce"] == [(r, r + 1) for r in range(0, 16, 2)]
    assert [t.group for t in tasks if t.operation == "reduce_scatter"] == [
        tuple(range(0, 16, 2)), tuple(range(1, 16, 2))
    ]  # fmt: skip
    alone = [predict("ring_all_reduce", "star:n_hosts=16,bandwidth=10Gbps", 2e6, n_ranks=2).time,
             predict("ring_reduce_scatter", "star:n_hosts=16,bandwidth=10Gbps", 8e6, n_ranks=8).time]  # fmt: skip
    assert waits.exposed == pytest.approx(sum(alone), 1e-6)
    assert timeline.iteration_time == pytest.approx(0.006 + sum(alone), 1e-6)


def test_the_group_that_grows_is_named_where_it_is_not_clear(tmp_path):
    groups = [group("1", "", (0, 1)), group("2", "", (0, 2))]
    program = Program(0, 4, groups)
    for number in range(3):
        program.step(number)
        for name in "12":
            program.compute(0.001)
            program.call(name, "all_reduce", 1e6, name, 0.001)
            program.wait(name)
    program.step(3)
    file = program.write(tmp_path / "rank0.json")
    with pytest.raises(InputError, match="not clear which process group is data parallel; name it with --grow: 1"):
        retimed([file], "star:n_hosts=8", 2)
    with pytest.raises(InputError, match="--grow 7: no process group has this name"):
        retimed([file], "star:n_hosts=8", 2, grow=["7"])
    whole, _, _ = retimed([file], "star:n_hosts=8", 2, grow=["2"])
    sizes = {
        name: {len(t.group) for t, n in zip(whole.graph.tasks, whole.group_of, strict=True) if n == name}
        for name in "12"
    }
    assert sizes == {"1": {2}, "2": {4}}


DISPATCH = "void deep_ep::internode::dispatch<false, 4, false, 8192>(int4*, float*, long*)"
COMBINE = "void deep_ep::internode::combine<false, 4, __nv_bfloat16>(int4*, float*)"
NOTIFY = "void deep_ep::internode::notify_dispatch<false, 4>(int const*, int*)"


def experts(kernels=(NOTIFY, DISPATCH, COMBINE)):
    """Expert parallel with DeepEP's kernels: the dispatch of one half batch hides behind the other's computation."""
    groups = [group("0", "default_pg", range(16)), group("3", "mesh_ep", range(8))]
    program = Program(0, 16, groups, launches=True)
    notify, dispatch, combine = kernels
    for number in range(3):
        program.step(number)
        program._kernel("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", program.now, 1e-5, 7)
        program.now += 1e-5
        program.call("n", "barrier", 0, "3", 2e-5, kernel=notify)
        program.call("d", "all_to_all", 0, "3", 0.002, kernel=dispatch)
        program.compute(0.004)
        program.wait("n", "d")
        program.compute(0.001)
        program.call("c", "all_to_all", 0, "3", 0.002, kernel=combine)
        program.wait("c")
        program.compute(0.001)
    program.step(3)
    return program


def test_exchanges_of_deepep_are_known_by_name_and_overlap_computation(tmp_path):
    file = experts().write(tmp_path / "rank0.json")
    with pytest.raises(InputError, match=r"the bytes of kernel '.*dispatch<.*are not recorded; .*--size dispatch=SIZE"):
        traced_graph([file], None, (), None, [])
    for rate, hidden in (("100Gbps", True), ("10Gbps", False)):
        network = f"star:n_hosts=16,bandwidth={rate}"
        whole, timeline, waits = retimed([file], network, sizes=("dispatch=8MB", "combine=16MB"))
        members = {t.name: t.group for t in whole.graph.tasks if t.operation and 0 in t.group}
        assert set(members.values()) == {tuple(range(8))}
        dispatch, combine = (predict("pairwise_all_to_all", network, size, n_ranks=8).time for size in (8e6, 16e6))
        notify = predict("dissemination_barrier", network, 0, n_ranks=8).time
        assert (dispatch + notify < 0.004) is hidden
        waited = max(0.0, dispatch + notify - 0.004) + combine
        assert waits.exposed == pytest.approx(waited, 1e-6)
        assert timeline.iteration_time == pytest.approx(0.006 + 1e-5 + waited, 1e-6)


def test_own_names_are_known_by_a_table(tmp_path):
    own = tmp_path / "kernels.toml"
    own.write_text(
        '[[kernel]]\npattern = "my_moe::(send|fetch)"\noperation = "all_to_all"\nsize = "8MB"\ngroup = "ep"\n'
    )
    file = experts((NOTIFY, "my_moe::send<4>()", "my_moe::fetch<4>()")).write(tmp_path / "rank0.json")
    whole, _, _ = retimed([file], "star:n_hosts=16", kernels=own)
    assert [t.size for t in whole.graph.tasks if t.operation == "all_to_all" and 0 in t.group] == [8e6, 8e6]
    own.write_text('[[kernel]]\npattern = "("\noperation = "all_to_all"\n')
    with pytest.raises(InputError, match=r"kernels.toml, line 2: kernel\[0\].pattern must be a regular expression"):
        retimed([file], "star:n_hosts=16", kernels=own)
