import dataclasses
import os
import time

import pytest

from commsim.core.errors import BackendError
from switch_model.bpf.attachment import FOLDER, _detach_dead, alone, attach, attachments, detach, write
from switch_model.bpf.commands import output_of, records_of
from switch_model.bpf.ports import chosen_ports
from switch_model.bpf.program import build
from switch_model.systems.switchml import switchml_udp

pytestmark = [pytest.mark.needs_kernel("bpf")]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return build(switchml_udp(64, pool_size=2), tmp_path_factory.mktemp("bpf"))


def filters(name):
    return records_of(["tc", "-json", "filter", "show", "dev", name, "ingress"]) if hooks(name) else []


def hooks(name):
    return [row for row in records_of(["tc", "-json", "qdisc", "show", "dev", name]) if row["kind"] == "clsact"]


def programs():
    return {row["id"] for row in records_of(["bpftool", "--json", "prog", "show"])}


def is_gone(program):
    """Whether the kernel has let go of a program; it does so some time after the last user has."""
    deadline = time.monotonic() + 60
    while program in programs() and time.monotonic() < deadline:
        time.sleep(0.01)
    return program not in programs()


def test_what_is_attached_is_written_down_and_goes_without_a_trace(target, cable):
    mine = attach(target, chosen_ports(cable, 64))
    assert mine.lives
    assert mine in attachments()
    assert {f["options"]["prog"]["id"] for name in cable for f in filters(name) if "options" in f} == {mine.program}
    detach(mine)
    assert not any(hooks(name) for name in cable)
    assert is_gone(mine.program)
    assert mine not in attachments()


def test_a_port_has_one_switch(target, cable):
    mine = attach(target, chosen_ports(cable[:1], 64))
    try:
        with pytest.raises(BackendError, match=f"a switch sits at {cable[0]} already"):
            attach(target, chosen_ports(cable, 64))
        assert filters(cable[0])
        assert not hooks(cable[1])
    finally:
        detach(mine)


def test_filters_and_hooks_of_others_stay(target, cable):
    output_of(["tc", "qdisc", "add", "dev", cable[0], "clsact"])
    try:
        detach(attach(target, chosen_ports(cable, 64)))
        assert hooks(cable[0])
        assert not hooks(cable[1])
    finally:
        output_of(["tc", "qdisc", "del", "dev", cable[0], "clsact"])


def test_a_program_that_the_kernel_refuses_leaves_nothing(tmp_path, cable):
    bad = tmp_path / "bad.bpf.o"
    bad.write_bytes(b"no program")
    with pytest.raises(BackendError, match="failed with exit status"):
        attach(bad, chosen_ports(cable, 64))
    assert not any(hooks(name) for name in cable)
    assert not [a for a in attachments() if a.process == os.getpid()]


def test_what_a_dead_process_left_is_found_and_taken_away(target, cable):
    mine = attach(target, chosen_ports(cable, 64))
    mine.path.unlink()
    orphan = dataclasses.replace(mine, began=mine.began - 1)  # as if another process had had our number
    write(orphan)
    assert not orphan.lives
    with alone():
        _detach_dead()  # or another process that tests at the same time was first
    assert orphan not in attachments()
    assert not any(hooks(name) for name in cable)
    assert is_gone(mine.program)


def test_files_that_say_nothing_are_removed(target):
    FOLDER.mkdir(exist_ok=True)
    torn = FOLDER / f"{os.getpid()}-torn.json"
    torn.write_text('{"process": 1, "beg')
    assert all(a.process != 1 for a in attachments())
    assert not torn.exists()
