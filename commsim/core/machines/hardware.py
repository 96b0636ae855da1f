"""Facts about a network's machines that no link shows: makers of GPUs and CPUs, and how they reach a network.

They matter only to software that treats hardware by its make, such as NCCL. Times of transfers follow from the links.
"""

from __future__ import annotations

from collections.abc import Mapping

from commsim.core.errors import InputError, alike, did_you_mean

# Generations of GPUs, by who makes them; NCCL and RCCL have constants for each.
GPU_MAKERS = {
    "volta": "nvidia", "turing": "nvidia", "ampere": "nvidia", "ada": "nvidia", "hopper": "nvidia",
    "blackwell": "nvidia", "vega": "amd", "cdna1": "amd", "cdna2": "amd", "cdna3": "amd", "cdna4": "amd",
}  # fmt: skip
# What each fact may be. "net" is the transport below the library: its latency is software's and no cable's; with a
# year, its software up to then, else today's; "ena" is TCP over the virtual NIC of AWS; "efa" is the EFA that the
# machines of that GPU have first had, "efa3" its third generation or a later one. "sharp" is
# whether the fabric's switches reduce, and the library's plugin for that is enabled; "nic_ports" is how many ports
# each NIC has. "guessed" names facts and rates
# that a file of a machine leaves open.
FACTS: dict[str, tuple[str, ...]] = {
    "gpu": tuple(GPU_MAKERS),
    "cpu": ("intel", "amd", "arm", "other"),
    "net": (
        "infiniband",
        "roce",
        "spectrum-x",
        "uec",
        "efa",
        "efa3",
        "slingshot",
        "slingshot-2025",
        "tcpx",
        "tcpxo",
        "ena",
        "sockets",
    ),
    "gpudirect": ("yes", "no"),
    "sharp": ("on", "off"),
    "nic_ports": ("1", "2", "4"),
    "guessed": ("gpu", "nic", "gpu+nic"),
}
# What people also call a network.
OTHER_NAMES: Mapping[str, str] = {
    "ib": "infiniband", "ndr": "infiniband", "hdr": "infiniband", "quantum": "infiniband", "ethernet": "roce",
    "eth": "roce", "rocev2": "roce", "rdma": "infiniband or roce", "spectrum": "spectrum-x", "srd": "efa",
    "tcp": "sockets", "socket": "sockets", "ss": "slingshot", "cxi": "slingshot",
}  # fmt: skip
# Networks that spread the packets of a message over all equal paths as they are run, and who says so; the others hash a
# connection to one path. Of Spectrum switches adaptive routing is off until it is configured (NVIDIA, NVUE reference,
# "router adaptive-routing state"), which is what "spectrum-x" stands for; without it they are "roce". What is said of
# EFA and of Slingshot is of the makers' papers, whose text was not at hand: a reading of the first is in "A quick look
# at AWS SRD" (ipSpace.net, 2022: in parallel over all alternate paths); the abstract of the second has adaptive
# routing. Slingshot's may also take longer paths, which are left out.
SPREADING: Mapping[str, str] = {
    "infiniband": "adaptive routing, on by default in opensm.conf, where routing_engine is ar_updn: NVIDIA, InfiniBand "
    "cluster bring-up procedure, Adaptive routing",
    "spectrum-x": "packets of a flow take several paths, and the SuperNIC puts them in order: NVIDIA, RoCE adaptive "
    "routing of Spectrum-X",
    "uec": "an entropy value for each packet: Hoefler et al., Ultra Ethernet's design principles, arXiv:2508.08906, 2, "
    "ECMP packet spraying",
    **dict.fromkeys(
        ("efa", "efa3"),
        "SRD sends over many paths, out of order: Shalev, Ayoub, Bshara and Sabbag, IEEE Micro 40(6), 2020",
    ),
    **dict.fromkeys(("slingshot", "slingshot-2025"), "adaptive routing: De Sensi et al., SC 2020, arXiv:2008.08886"),
}
# What software takes a network for that it has no name of its own for.
TRANSPORTS: Mapping[str, str] = {"spectrum-x": "roce", "uec": "roce"}
# The least compute capability of each generation of NVIDIA's: 90 for 9.0.
_CAPABILITIES = ((100, "blackwell"), (90, "hopper"), (89, "ada"), (80, "ampere"), (75, "turing"), (70, "volta"))


def read_hardware(text: str, name: str = "hardware") -> dict[str, str]:
    """Read ``gpu=hopper,cpu=intel``.

    Parameters
    ----------
    text : str
        Facts of ``FACTS``, each at most once; empty where nothing is known.
    name : str
        Name used in messages.

    Raises
    ------
    InputError
        If a fact or its value is unknown, or comes twice.
    """
    facts: dict[str, str] = {}
    for part in text.split(",") if text else []:
        key, _, value = part.partition("=")
        if key not in FACTS or key in facts:
            raise InputError(f"{name} must be {', '.join(f'{k}=...' for k in FACTS)}, each once, got {text!r}")
        if value not in FACTS[key]:
            meant = OTHER_NAMES.get(value.lower(), "") if key == "net" else ""
            hint = did_you_mean([meant] if meant else alike(value.lower(), FACTS[key]), last=True)
            raise InputError(f"{name}: {key} must be one of {', '.join(FACTS[key])}, got {value!r}{hint}")
        facts[key] = value
    return facts


def net_of(hardware: str) -> str:
    """Return the network that joins the machines of :attr:`Network.hardware`; empty where that is not known."""
    return read_hardware(hardware).get("net", "")


def transport_of(hardware: str) -> str:
    """Return what software takes that network for: RoCE of an Ethernet that spreads packets."""
    return TRANSPORTS.get(net_of(hardware), net_of(hardware))


def write_hardware(facts: Mapping[str, str]) -> str:
    """Write facts in the order of ``FACTS``, so that equal ones are equal text."""
    return ",".join(f"{key}={facts[key]}" for key in FACTS if key in facts)


def guesses_of(hardware: str, *, has_fabric: bool = False) -> str:
    """Say what of :attr:`Network.hardware` is a guess, and which parameters say better; empty where nothing is.

    Parameters
    ----------
    hardware : str
        Facts of the machines.
    has_fabric : bool
        Whether several machines are joined, so that the rate of NICs matters.
    """
    facts = read_hardware(hardware)
    guessed = facts.get("guessed", "").split("+")
    lines = [f"{facts.get('gpu')} GPUs (gpu=)"] * ("gpu" in guessed)
    lines += ["NICs as fast as their PCIe links (nic=)"] * ("nic" in guessed and has_fabric)
    return f"guessed: {', '.join(lines)}" if lines else ""


def generation_of(compute_capability: int) -> str:
    """Return NVIDIA's generation of a compute capability, 90 for 9.0; empty for those before Volta."""
    return next((name for least, name in _CAPABILITIES if compute_capability >= least), "")


def maker_of(hardware: str) -> str:
    """Return who makes the GPUs of :attr:`Network.hardware`: nvidia, amd, or empty where that is not known."""
    return GPU_MAKERS.get(read_hardware(hardware).get("gpu", ""), "")
