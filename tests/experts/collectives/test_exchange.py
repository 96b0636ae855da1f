"""Exchanges of experts: exact bytes against a count by hand, sums against a loop, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from under_mpiexec import under_mpiexec

import commsim as cs
from collectives import COLLECTIVES
from collectives.experts.routing import routed
from collectives.experts.seats import ranks_of_choices
from commsim.cli import main
from commsim.core.checking.check import check
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from tests.oracles.numeric_run import run_reference

EACH = 8  # ranks of a machine
BYTES = {"fp8": 7168 + 224, "bf16": 14336}


@st.composite
def exchanges(draw):
    """Ranks, their machines, and a routing."""
    n_machines, per = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n_ranks = n_machines * per
    n_experts = n_ranks * draw(st.integers(1, 3))
    asked = {
        "tokens": draw(st.integers(1, 9)), "n_experts": n_experts, "seed": draw(st.integers(0, 9)),
        "top_k": draw(st.integers(1, n_experts)), "routing": draw(st.sampled_from(["uniform", "balanced", "zipf"])),
        "skew": draw(st.floats(0, 3)), "replicas": n_ranks * draw(st.integers(0, 2)), "balance": draw(st.booleans()),
        "mode": draw(st.sampled_from(["normal", "low_latency"])),
    }  # fmt: skip
    least = -(-asked["top_k"] * n_machines // n_experts)
    asked["max_machines"] = draw(st.integers(least, n_machines))
    return n_ranks, tuple(tuple(range(m * per, (m + 1) * per)) for m in range(n_machines)), asked


def sets_of(n_ranks, machines, asked):
    """Rank of each choice of each token, by sender: the routing as a plain list."""
    limited = 0 < asked["max_machines"] < len(machines)
    whole = (tuple(range(n_ranks)),)
    group = asked["n_experts"] // (len(machines) if limited else 1)
    experts = routed(n_ranks * asked["tokens"], asked["n_experts"], asked["top_k"], asked["routing"], asked["skew"],
                     asked["seed"], group, asked["max_machines"])  # fmt: skip
    ranks = ranks_of_choices(experts, asked["n_experts"], machines if limited else whole, asked["replicas"],
                             asked["balance"])  # fmt: skip
    return ranks.reshape(n_ranks, asked["tokens"], asked["top_k"]).tolist()


@given(exchanges(), st.booleans())
def test_every_token_gets_to_its_experts_and_every_sum_comes_back(exchange, in_order):
    n_ranks, machines, asked = exchange
    for name in ("ep_dispatch", "ep_combine"):
        check(COLLECTIVES[name].build(n_ranks, machines=machines, in_order=in_order, pieces=3, **asked))


@given(exchanges())
def test_ranks_send_and_receive_what_a_loop_over_tokens_counts(exchange):
    n_ranks, machines, asked = exchange
    place = {rank: (m, i) for m, machine in enumerate(machines) for i, rank in enumerate(machine)}
    sent = np.zeros((n_ranks, n_ranks), int)
    for sender, tokens in enumerate(sets_of(n_ranks, machines, asked)):
        for choices in tokens:
            if asked["mode"] == "low_latency":
                for rank in choices:
                    sent[sender, rank] += 1
                continue
            for m in {place[rank][0] for rank in choices}:
                relay = sender if m == place[sender][0] else machines[m][place[sender][1]]
                sent[sender, relay] += relay != sender
                for rank in {rank for rank in choices if place[rank][0] == m}:
                    sent[relay, rank] += 1
    np.fill_diagonal(sent, 0)
    for name, wanted in (("ep_dispatch", sent), ("ep_combine", sent.T)):
        t = COLLECTIVES[name].build(n_ranks, machines=machines, pieces=2, **asked).expand()
        got = np.zeros((n_ranks, n_ranks), int)
        np.add.at(got, (t["src"], t["dst"]), t["count"])
        np.fill_diagonal(got, 0)
        assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize(("operation", "precision"), [("dispatch", "fp8"), ("combine", "bf16")])
def test_nics_and_nvlinks_carry_the_bytes_of_a_count_by_hand(operation, precision):
    network = load_network("dgx-h100@star:machines=2")
    asked = {"tokens": 20, "n_experts": 32, "top_k": 4, "routing": "zipf", "skew": 1.0, "seed": 3, "max_machines": 0,
             "replicas": 0, "balance": False}  # fmt: skip
    machines = tuple(tuple(range(m * EACH, (m + 1) * EACH)) for m in range(2))
    nic, nvlink = np.zeros(16), np.zeros(16)
    for sender, tokens in enumerate(sets_of(16, machines, asked)):
        for choices in tokens:
            nic[sender] += any(rank // EACH != sender // EACH for rank in choices)
            for rank in set(choices):
                relay = rank // EACH * EACH + sender % EACH
                nvlink[relay] += relay != rank
    text = ",".join(f"{key}={value}".lower() for key, value in asked.items())
    (result,) = solve(scenario_of(f"ep_{operation}:{text}", network, overhead="0us"), [1.0]).results
    found = result.link_bytes
    back = operation == "combine"
    for rank in range(16):
        m, gpu = divmod(rank, EACH)
        ends = [(f"m{m}.nic{gpu}", network.nodes[-1]), (f"m{m}.gpu{gpu}", f"m{m}.nvswitch0")]
        for (a, b), count in zip(ends, (nic[rank], nvlink[rank]), strict=True):
            a, b = (network.nodes.index(name) for name in ((b, a) if back else (a, b)))
            link = np.flatnonzero((network.src == a) & (network.dst == b))
            assert found[link].sum() == pytest.approx(count * BYTES[precision], rel=1e-12)


def test_a_combine_sums_what_the_dispatch_sent_as_a_loop_does():
    asked = {"tokens": 6, "n_experts": 12, "top_k": 3, "routing": "zipf", "machines": ((0, 1), (2, 3)), "pieces": 2,
             "in_order": True}  # fmt: skip
    dispatch, combine = (COLLECTIVES[f"ep_{name}"].build(4, **asked) for name in ("dispatch", "combine"))
    draw = np.random.default_rng(1)
    tokens = draw.integers(-9, 10, (4, dispatch.n_chunks)).astype(float)
    at_experts = run_reference(dispatch, tokens) * (1 + np.arange(4))[:, np.newaxis]  # rank r's experts multiply by r+1
    sums = run_reference(combine, at_experts)[:, :6]
    plain = {"skew": 1.0, "seed": 0, "max_machines": 0, "replicas": 0, "balance": False, **asked}
    for sender, routes in enumerate(sets_of(4, asked["machines"], plain)):
        for token, choices in enumerate(routes):
            assert sums[sender, token] == sum(tokens[sender, token] * (1 + rank) for rank in set(choices))


@pytest.mark.mpi
def test_over_mpi_the_sums_of_a_combine_are_those_of_a_loop():
    done = under_mpiexec(4, "tests/real/run_experts.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 ranks: all right" in done.stdout


def test_popular_experts_with_replicas_leave_the_busiest_rank_less():
    asked = {"tokens": 64, "n_experts": 32, "top_k": 2, "routing": "zipf", "skew": 1.2}

    def busiest(**more):
        t = COLLECTIVES["ep_dispatch"].build(8, mode="low_latency", **asked, **more).expand()
        return np.bincount(t["dst"], t["count"]).max()

    plain, balanced, replicated = busiest(), busiest(balance=True), busiest(balance=True, replicas=16)
    assert plain > balanced > replicated >= 64 * 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("n_experts=100", "n_experts must be a multiple of 8 ranks, got 100"),
        ("n_experts=64,top_k=65", "top_k must be 1 to 64, got 65"),
        ("routing=zipf,skew=nan", "skew must be a number, got 'nan'"),
        ("tokens=0", "tokens must be 1 to 1048576, got 0"),
        ("replicas=3", "replicas must be a multiple of 8 ranks, 0 or more, got 3"),
        ("routing={file},top_k=2", "must have 128 tokens, those of all ranks, got 2"),
        ("routing={file},top_k=3", "must have 3 experts of each token, got 2"),
        ("library=trtllm_one_sided,mode=low_latency", "needs mode=normal"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path, capsys, arguments, told):
    (tmp_path / "two.csv").write_text("token,first,second\n0,1,2\n1,3,4\n")
    collective = "ep_dispatch:" + arguments.format(file=tmp_path / "two.csv")
    assert main(["run", "--topology", "dgx-h100", "--collective", collective]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "bad", ["0,1,2\n1,3,nan\n", "0,1,2\n1,3," + "9" * 400 + "\n", "0,1,2\n1,3,3\n", "0,1,2\n1,3,99\n", "0,1,2\n5,3,4\n"]
)
def test_a_routing_file_with_a_wrong_line_is_refused(tmp_path, bad):
    path = tmp_path / "two.csv"
    path.write_text("token,first,second\n" + bad)
    with pytest.raises(cs.InputError, match=r"two\.csv"):
        routed(2, 8, 2, str(path), 1.0, 0, 8, 0)


def test_a_file_of_weights_draws_no_expert_without_one(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("expert,weight\n" + "".join(f"{e},{e % 2}\n" for e in range(8)))
    assert set(routed(50, 8, 3, str(path), 1.0, 0, 8, 0).ravel().tolist()) == {1, 3, 5, 7}
