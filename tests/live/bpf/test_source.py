import re

import numpy as np
import pytest

from commsim.core.errors import InputError
from switch_model.bpf.program import COUNTERS, source_for, value_types
from switch_model.systems import SYSTEMS
from switch_model.systems.switchml import switchml_udp

COUNTED = (
    "PACKETS_IN", "PACKETS_OUT", "FIRST", "ADDED", "DUPLICATES", "COMPLETE", "ANSWERED", "WRONG_LENGTH",
    "UNKNOWN_SOURCE", "WRONG_TYPE", "WRONG_JOB", "NO_SUCH_SLOT", "OUT_OF_SEQUENCE", "INJECTED_IN", "INJECTED_OUT",
    "NOT_SENT", "WRONG_TAG",
)  # fmt: skip


def definitions(system):
    found = re.findall(r"^#define (\w+) (\d+)$", source_for(system), re.MULTILINE)
    return {name: int(value) for name, value in found}


def test_the_program_is_written_for_its_system():
    defined = definitions(switchml_udp(256, pool_size=99))
    expected = {"ELEMENTS": 256, "POOL_SIZE": 99, "TYPE_AND_SIZE": 0x13, "MAX_WORKERS": 32, "N_COUNTERS": len(COUNTERS)}
    assert expected.items() <= defined.items()


def test_each_counter_and_each_action_has_a_number_of_its_own():
    defined = definitions(switchml_udp(64))
    assert sorted(defined[name] for name in COUNTED) == list(range(len(COUNTERS)))
    actions = ("OVERWRITE", "ADD", "READ", "ALL", "SENDER", "DUPLICATE")
    assert len({defined[name] for name in actions}) == len(actions)


@pytest.mark.parametrize("name", ["switchml_rdma", "atp", "sharp"])
def test_systems_of_another_kind_are_refused(name):
    with pytest.raises(InputError, match="as switchml_udp; got"):
        source_for(SYSTEMS[name].build())


def test_pools_and_packets_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="1 to 16384 slots, got 20000"):
        source_for(switchml_udp(64, pool_size=20000))
    with pytest.raises(InputError, match="64 or 256 elements, got 128"):
        source_for(switchml_udp(128))


def test_records_have_no_holes_that_c_would_not_have():
    """C aligns members to their size; NumPy does not, so the two agree only where there is nothing to align."""
    for record in value_types(64).values():
        for name in record.names or ():
            kind, offset = record.fields[name][:2]
            assert offset % kind.base.itemsize == 0, name
        assert record.itemsize % 4 == 0
    assert value_types(256)["slots"].itemsize == 4 + 24 + 4 + 2 * 4 * 256
    assert np.dtype(value_types(64)["counters"]).itemsize == 8 * len(COUNTERS)
