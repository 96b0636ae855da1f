"""Names of switch systems and of collectives, what a plain name means, and what is refused."""

import json

import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.packets.aggregated.systems import named_system, split_system
from commsim.prediction.build import prepare

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


def test_a_plain_name_means_one_system_and_others_are_asked_for():
    raw = split_system(COLLECTIVES["switchml"], {"system": "switchml_udp", "pool": "4", "rto": "0.001"})
    assert raw[0] == {"pool": "4"}
    assert (raw[1].at().name, raw[1].at().rto) == ("switchml_udp", 1e-3)
    assert named_system("switchml", {})[0].at().name == "switchml_rdma"
    assert split_system(COLLECTIVES["switchml"], {"system": "none"}) == ({}, None)
    assert (*map(str, prepare("sharp", STAR).notes),)[-1].count("sharp_") == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("switchml:system=atp", "system must be one of switchml_rdma, switchml_udp, none, got 'atp'"),
        ("switchml:poolsize=4", "no parameter 'poolsize'; did you mean pool_size"),
        ("switchml:system=none,pool_size=4", "switchml has no parameter 'pool_size'"),
        ("switchml:window=7", "whole messages of 4 packets"),
    ],
)
def test_what_is_no_parameter_of_a_system_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        prepare(spec, STAR)


def test_a_builder_declares_what_it_needs():
    from collectives import collective

    for needs, message in (
        (("towers",), "unknown need 'towers'"),
        (("groups",), "takes no groups"),
        ((), "declare needs"),
    ):
        name = "machines" if not needs else "n_chunks"
        with pytest.raises(InputError, match=message):
            exec(f"def f(n_ranks: int, {name}: int = 1): ...", scope := {})
            collective("all_reduce", needs=needs)(scope["f"])


def test_the_slots_take_no_framing_and_no_trace():
    ready = prepare("switchml", STAR)
    with pytest.raises(InputError, match="system=none sends transfers"):
        ready.predict(2**20, engine="packet", trace=True)
    assert json.dumps(ready.predict(2**20, engine="packet").row())
