"""Rates of ports as tools write them: ``4x EDR``, ``4X 25.78125 Gbps``, ``400G``, ``100000`` of a column in Mb/s."""

from __future__ import annotations

import re

from commsim.core.errors import InputError

# Data rate of one lane in Gb/s, line coding taken off (InfiniBand Architecture Specification, volume 2, table of link
# rates; 8b/10b up to QDR, 64b/66b and FEC after it).
LANES = {
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
    "XDR": 200.0, "GDR": 400.0,
}  # fmt: skip
# The same by what iblinkinfo prints: the rate of signals.
SIGNALS = {
    2.5: "SDR", 5.0: "DDR", 10.0: "QDR", 10.3125: "FDR10", 14.0625: "FDR", 25.78125: "EDR", 26.5625: "HDR",
    53.125: "HDR", 106.25: "NDR", 212.5: "XDR", 425.0: "GDR",
}  # fmt: skip
_LANES = re.compile(r"(?:(\d{1,2})\s*x\s*)?([A-Z]{3}(?:10)?)(\d{2,4})?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z/]*)", re.ASCII)
_UNITS = {
    "k": 1e3, "kb": 1e3, "kbps": 1e3, "kb/s": 1e3, "kbit/s": 1e3, "m": 1e6, "mb": 1e6, "mbps": 1e6, "mb/s": 1e6,
    "mbit/s": 1e6, "g": 1e9, "gb": 1e9, "gbe": 1e9, "ge": 1e9, "gbps": 1e9, "gb/s": 1e9, "gbit": 1e9, "gbit/s": 1e9,
    "gbase": 1e9, "t": 1e12, "tb": 1e12, "tbps": 1e12, "tb/s": 1e12, "tbit/s": 1e12, "bps": 1.0, "b/s": 1.0,
}  # fmt: skip


def lane_rate(width: int, generation: str) -> float:
    """Rate of a port, bytes/s.

    Parameters
    ----------
    width : int
        Number of lanes.
    generation : str
        A key of ``LANES``.
    """
    return width * LANES[generation] * 1e9 / 8


def signal_generation(gbps: float) -> str:
    """Return the generation of a lane by the rate of its signals, as iblinkinfo prints it; empty if it is none."""
    near = min(SIGNALS, key=lambda rate: abs(rate - gbps))
    return SIGNALS[near] if abs(near - gbps) < 0.01 * near else ""


def port_rate(text: str, where: str, usual: float = 1e9) -> float:
    """Read the rate of a port.

    Parameters
    ----------
    text : str
        ``400G``, ``400 Gb/s``, ``4xEDR``, ``NDR400``, or a number.
    where : str
        Place of the text, for messages.
    usual : float, bit/s
        Unit of a number without one.

    Returns
    -------
    float, bytes/s

    Raises
    ------
    InputError
        If it is no rate.
    """
    text = text.strip()
    if (lanes := _LANES.fullmatch(text)) and (name := lanes[2].upper()) in LANES:
        if lanes[3]:  # as in HDR100: of the whole port
            return float(lanes[3]) * 1e9 / 8
        return lane_rate(int(lanes[1] or 4), name)
    number = _NUMBER.fullmatch(text)
    unit = _UNITS.get(number[2].lower(), 0.0) if number and number[2] else usual
    if number is None or not unit or not float(number[1]):
        raise InputError(f"{where}: a rate is written as in 400G, 4xEDR or 100000 of a column in Mb/s, got "
                         f"{text!r}")  # fmt: skip
    return float(number[1]) * unit / 8
