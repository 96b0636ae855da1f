"""The program in the kernel on the ways that a proof has found: it answers as the model does, in every state."""

import pytest
from udp_frames import PORT, packet

from benchmarks.switch.live_conformance import ELEMENTS, FIRST_SLOT, HOSTS, JOB, ConformanceError, check_live
from benchmarks.switch.way_tree import way_tree
from switch_model.bpf.attachment import attach, detach
from switch_model.bpf.data_plane import KernelPlane
from switch_model.bpf.ports import chosen_ports
from switch_model.bpf.program import build
from switch_model.prove.exploration import explore
from switch_model.prove.question import ProofQuestion
from switch_model.systems.switchml import switchml_udp

pytestmark = [pytest.mark.needs_kernel("bpf")]

SWITCH, POOL = ("127.10.0.254", PORT), 4


class KernelUnderTest:
    """The kernel's switch; a packet runs through its program, and the counters say whom the answer went to."""

    def __init__(self, program):
        self._plane, self._peers = KernelPlane(program, POOL, ELEMENTS, *SWITCH), []

    def open(self, peers, n_slots, begin):
        self._peers = peers
        self._plane.open(JOB, peers, FIRST_SLOT, n_slots, begin)

    def close(self):
        self._plane.close(JOB)

    def give(self, payload, worker):
        before = self._plane.counts()
        _, left = self._plane.program.run(packet(payload, HOSTS[worker], SWITCH))
        after = self._plane.counts()
        to = range(len(self._peers)) if after["complete"] > before["complete"] else [worker]
        answered = sum(after[name] - before[name] for name in ("complete", "answered"))
        return [(rank, left[42:]) for rank in to] if answered else []


@pytest.fixture(scope="module")
def kernel(tmp_path_factory, cable):
    target = build(switchml_udp(ELEMENTS, pool_size=POOL), tmp_path_factory.mktemp("bpf"))
    attachment = attach(target, chosen_ports(cable[:1], ELEMENTS))
    yield KernelUnderTest(attachment.program)
    detach(attachment)


@pytest.mark.parametrize(
    ("question", "every"),
    [
        (ProofQuestion("switchml_live", 2, 1, 3), 1),
        (ProofQuestion("switchml_live", 2, 1, 2, restarts=1, recovery="epoch"), 1),
        (ProofQuestion("switchml_live", 3, 2, 4), 20),
        pytest.param(ProofQuestion("switchml_live", 3, 2, 4), 1, marks=pytest.mark.deep),
    ],
)
def test_the_kernel_answers_as_the_model_in_every_state(kernel, question, every):
    checked = check_live(way_tree(explore(question)), kernel, every)
    assert checked.packets > 60


def test_a_kernel_that_forgets_its_slots_is_noticed(kernel):
    tree = way_tree(explore(ProofQuestion("switchml_live", 2, 1, 2)))

    class Forgetful(KernelUnderTest):
        def __init__(self):
            self.inner, self.n = kernel, 0

        def open(self, peers, n_slots, begin):
            self.facts = peers, n_slots, begin
            kernel.open(*self.facts)

        def close(self):
            kernel.close()

        def give(self, payload, worker):
            self.n += 1
            if self.n == 60:
                kernel.close()
                kernel.open(*self.facts)
            return kernel.give(payload, worker)

    with pytest.raises(ConformanceError):
        check_live(tree, Forgetful())
    kernel.close()
