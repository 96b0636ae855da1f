"""A congestion control of a user's file: that of the documentation, one that changes nothing, and broken ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import commsim as cs
from commsim.core.spec import OwnFile
from commsim.packets.transports.own_controls import CONTROLS
from commsim.packets.transports.spraying import Spraying
from commsim.packets.transports.transports import transport_of

ROOT = Path(cs.__file__).parent.parent
EXAMPLE, DCQCN = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto_extend.md").read_text(), re.DOTALL)[:2]
NETWORK = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps,uplink_bandwidth=100Gbps"
HEAD = "from commsim.packets.transports.own_controls import Flow, congestion_control\n\n@congestion_control\n"
TIMELY = """from commsim.packets.transports.own_controls import Flow, congestion_control


@congestion_control(paces=True)
def timely(flow: Flow, segment: float = 16384.0):
    memory = flow["memory"]  # bytes since the last look, smoothed difference, last round trip, rises in a row
    memory[0] += flow["acked"]
    if flow["lost"] or memory[0] < segment:
        return
    memory[0] = 0.0
    if memory[2] > 0:
        memory[1] += 0.875 * (flow["rtt"] - memory[2] - memory[1])
    memory[2] = flow["rtt"]
    gradient, step = memory[1] / flow["base_rtt"], 1e-3 * flow["line_rate"]
    high = 5 * flow["base_rtt"]
    if flow["rtt"] < 1.5 * flow["base_rtt"]:
        memory[3] = 0
        flow["rate"] += step
    elif flow["rtt"] > high:
        memory[3] = 0
        flow["rate"] *= 1 - 0.8 * (1 - high / flow["rtt"])
    elif gradient <= 0:
        memory[3] += 1
        flow["rate"] += step * (5 if memory[3] >= 5 else 1)
    else:
        memory[3] = 0
        flow["rate"] *= max(1 - 0.8 * gradient, 0.5)
"""
IDLE = HEAD + "def idle(flow: Flow):\n    flow['window'] = flow['window']\n"


@pytest.fixture
def files(tmp_path, monkeypatch, forgets):
    """A folder with the example, which is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    forgets(CONTROLS)
    (tmp_path / "aimd.py").write_text(EXAMPLE)
    (tmp_path / "idle.py").write_text(IDLE)
    (tmp_path / "dcqcn.py").write_text(DCQCN)
    return tmp_path


def solved(transport):
    return cs.predict("direct_all_to_all", NETWORK, "256KiB", engine="packet", transport=transport)


def test_a_control_that_changes_nothing_is_a_window(files):
    own, ours = (solved(Spraying(transport)) for transport in (OwnFile("./idle.py"), "window"))
    assert own.time == ours.time
    assert own.counters == ours.counters


@pytest.mark.parametrize("constants", ["", ":segment=4096"])
def test_a_rate_of_a_file_is_that_of_the_transport_with_the_same_rule(files, constants):
    """TIMELY written as a user would: the same packets at the same times as the kernel of its own."""
    (files / "mine.py").write_text(TIMELY)
    question = ("direct_all_to_all", NETWORK, "4MiB")
    own, ours, line = (
        cs.predict(*question, engine="packet", transport=Spraying(transport))
        for transport in (OwnFile(f"./mine.py{constants}"), f"timely{constants.replace('4096', '4096B')}", "nscc")
    )
    assert own.time == pytest.approx(ours.time, rel=1e-9)
    assert own.counters == ours.counters
    assert line.time != pytest.approx(ours.time, rel=1e-3)


@pytest.mark.parametrize(
    ("size", "options"), [("4MiB", {}), ("4MiB", {"loss": 0.01, "pause_at": 0.0}), ("4MiB", {"balancing": "oblivious"})]
)
def test_notifications_timers_and_sent_bytes_of_a_file_are_those_of_dcqcn(files, size, options):
    """DCQCN written as a user would: all packets at the same picoseconds."""
    own, ours, window = (
        cs.predict("direct_all_to_all", NETWORK, size, engine="packet", packets=options | {"transport": transport})
        for transport in (OwnFile("./dcqcn.py"), "dcqcn", "window")
    )
    assert (own.time, own.counters) == (ours.time, ours.counters)
    assert own.counters["marks"] > 1000
    assert window.time != ours.time


@pytest.mark.parametrize("like", ["dcqcn", "dcqcn:notify_every=20us,notify_delay=3us"])
def test_a_notification_does_not_overtake_the_one_before(files, like):
    """Where one waits longer in queues than the next: it once made the estimate of congestion grow with time."""
    (files / "dcqcn.py").write_text(DCQCN.replace('"dcqcn"', repr(like)))
    own, ours = (
        cs.predict("direct_all_to_all", NETWORK, "12MiB", engine="packet", packets={"transport": transport})
        for transport in (OwnFile("./dcqcn.py"), like)
    )
    assert own.time == pytest.approx(ours.time, rel=1e-8)  # many rates are sums, which round in other ways in bytes/s
    assert own.counters == ours.counters


TIMERS = """from commsim.packets.transports.own_controls import SENT, TIMER, Flow, congestion_control


@congestion_control(paces=True, sent=True)
def mine(flow: Flow, first: float = 3e-6, second: float = 3e-6, third: float = -1.0):
    memory = flow["memory"]
    if flow["event"] == SENT and memory[0] == 0:
        memory[0], memory[1] = 1, flow["now"]
        flow["timers"][0], flow["timers"][1] = flow["now"] + first, flow["now"] + second
        flow["timers"][2] = flow["now"] + third
    if flow["event"] == TIMER:
        memory[2] = 10 * memory[2] + flow["timer"] + 1
        if flow["timer"] == 0 and abs(flow["now"] - memory[1] - first) < 1e-15:
            memory[3] = 1
        flow["rate"] = flow["line_rate"] * WANTED
"""


@pytest.mark.parametrize(
    ("constants", "wanted"),
    [
        ("", "(memory[2] == 312) * (memory[3] == 1)"),  # of equal times the lower number first; what is over, at once
        (":second=1e-6", "(memory[2] == 321) * (memory[3] == 1)"),
        (":third=1e9", "(memory[2] == 12) * (memory[3] == 1)"),
    ],
)
def test_timers_fire_in_their_order_at_their_times(files, constants, wanted):
    """The last timer sets the line's rate if all came as wanted; else the message creeps at a thousandth of it."""
    (files / "mine.py").write_text(TIMERS.replace("WANTED", wanted))
    question = ("direct_all_to_all", "star:n_hosts=2,bandwidth=100Gbps", "8MiB")
    result = cs.predict(*question, engine="packet", transport=Spraying(OwnFile(f"./mine.py{constants}")))
    assert result.time < 3 * 2**22 / 12.5e9  # a packet or two crept meanwhile; all of them take 0.3 s


@pytest.mark.parametrize(("set_to", "share"), [("0.0", 1e-3), ("math.nan", 1e-3), ("math.inf", 1.0)])
def test_a_rate_is_a_thousandth_of_the_link_at_least_and_all_of_it_at_most(files, set_to, share):
    """Also where the function sets none: the message goes on, as fast as the bound lets it."""
    text = HEAD.replace("@congestion_control", "@congestion_control(paces=True)")
    (files / "mine.py").write_text(f"import math\n{text}def mine(flow: Flow):\n    flow['rate'] = {set_to}\n")
    result = cs.predict("direct_all_to_all", "star:n_hosts=2,bandwidth=100Gbps", "2MiB", engine="packet",
                        transport=Spraying(OwnFile("./mine.py")))  # fmt: skip
    whole = 2**20 / 12.5e9
    assert whole < result.time < 2 * whole if share == 1.0 else result.time > 50 * whole


def test_constants_change_the_window(files):
    half, most = (solved(Spraying(OwnFile(f"./aimd.py:left={left}"))) for left in (0.5, 0.99))
    assert half.counters != most.counters


def test_a_file_is_executed_only_by_a_flag_or_a_caller(files):
    (files / "aimd.py").write_text("open('ran', 'w').close()\n" + EXAMPLE)
    with pytest.raises(cs.InputError, match=r"aimd\.py: a data file cannot execute code"):
        transport_of("./aimd.py")
    assert not (files / "ran").exists()
    transport_of(OwnFile("./aimd.py"))
    assert (files / "ran").exists()
    with pytest.raises(cs.InputError, match="a data file cannot execute code"):  # also once it was executed
        transport_of("./aimd.py")


@pytest.mark.parametrize(
    ("content", "text", "said"),
    [
        ("", "./mine.py", r"mine\.py: registers no congestion control; decorate"),
        (HEAD + "def mine(flow):\n    pass\n", "./mine.py", r"parameter flow needs an annotation$"),
        (HEAD + "def mine(flow: Flow, a: float):\n    pass\n", "./mine.py", r"mine needs a"),
        (HEAD + "def mine(flow: Flow, a: str = 'x'):\n    pass\n", "./mine.py", r"a must be a number"),
        (EXAMPLE, "./mine.py:least=2", r"aimd has no parameter 'least'"),
        (DCQCN.replace('"dcqcn"', '"dcqnc"'), "./mine.py", r"transport 'dcqnc'.*dcqcn"),
        (DCQCN.replace('"dcqcn"', '"rccc"'), "./mine.py", r"mine\.py: like='rccc' has no window or rate"),
        (DCQCN.replace('like="dcqcn", ', ""), "./mine.py", r"mine\.py: sent=True needs a control that sets a rate"),
        (None, "./none.py", r"none\.py"),
    ],
)
def test_a_wrong_file_is_named(files, content, text, said):
    if content is not None:
        (files / "mine.py").write_text(content)
    with pytest.raises(cs.InputError, match=said):
        transport_of(OwnFile(text))


def test_what_cannot_be_compiled_is_named(files):
    (files / "mine.py").write_text(HEAD + "def mine(flow: Flow):\n    open('x')\n")
    with pytest.raises(cs.InputError, match=r"mine\.py"):
        solved(Spraying(OwnFile("./mine.py")))


@pytest.mark.slow
def test_it_is_the_same_without_the_compiler(files):
    code = (
        "import commsim as cs; from commsim.packets.transports.spraying import Spraying\n"
        f"print(repr(cs.predict('direct_all_to_all', {NETWORK!r}, '16KiB', engine='packet',"
        " transport=Spraying(cs.OwnFile('./aimd.py'))).time))"
    )
    times = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True,
        ).stdout
        for disabled in ("0", "1")
    ]  # fmt: skip
    assert times[0] == times[1] != ""
