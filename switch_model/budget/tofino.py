"""Intel's Tofino chips. Each number has its source beside it; what is not published is called an assumption."""

from __future__ import annotations

from switch_model.budget import hardware
from switch_model.budget.chip import Hardware

GBPS = 1e9 / 8
# p4c, backends/tofino/bf-p4c/mau/tofino/memories.h, which both chips share: 8 rows of 10 blocks, each of 1024 words of
# 128 bits; 4 meter ALUs, which are the stateful ones; registers live in the 6 columns that have map RAM beside them.
SRAM_BLOCKS, REGISTER_BLOCKS, BLOCK_BYTES, ARRAYS_PER_STAGE = 8 * 10, 8 * 6, 1024 * 16, 4
ENTRY_BYTES = 8  # p4app-switchML processor.p4: a pair of 32 bits
# Assumption: one more block for each array. Published limits of SwitchML's array (22,528 entries of 8 bytes,
# rdma_receiver.p4; 16,384 the largest power of two, configuration.p4) are then met exactly, and ATP's 40,000 entries of
# 4 bytes fit.
SPARE_BLOCKS = 1
# p4c, phv_spec: 4 groups of 16 containers of 32 bits that a parser fills, on both chips. So many values a pass of
# p4app-switchML takes on the first; that no pass takes more, in 16-bit containers, say, is an assumption.
HEADER_VALUES = 4 * 16
# p4app-switchML controller/next_step_selector.py sends to ports 64 and 68 of the pipes. On some boards one of them
# leads to the switch's own processor, so two in each pipe is an assumption.
LOOPBACKS = 2
SHARED_SOURCES = (
    "memory and ALUs of a stage: p4c, backends/tofino/bf-p4c/mau/tofino/memories.h",
    "64 values per pass: p4c phv_spec and p4app-switchML; that no more fit is an assumption",
    "assumption: one spare memory block per array (meets the limits in p4app-switchML's comments exactly)",
)


@hardware
def tofino_1(pipes: int = 4) -> Hardware:
    """Tofino: 12 stages, 16 ports of 100 Gb/s in each pipe.

    Parameters
    ----------
    pipes : int
        4, or 2 on smaller models.

    Returns
    -------
    Hardware

    References
    ----------
    Sharif, "Programmable data plane at terabit speeds", Barefoot at SIGCOMM 2018: 4 pipes, 260 serial lanes of 25 Gb/s
    of which 4 are the processor's, so 16 ports of 100 Gb/s in a pipe. p4c, class Target::Tofino: 12 stages.
    """
    return Hardware(
        f"tofino_1{'' if pipes == 4 else f' with {pipes} pipes'}",
        pipes,
        stages=12,
        arrays_per_stage=ARRAYS_PER_STAGE,
        entry_bytes=ENTRY_BYTES,
        sram_blocks=SRAM_BLOCKS,
        register_blocks=REGISTER_BLOCKS,
        block_bytes=BLOCK_BYTES,
        spare_blocks=SPARE_BLOCKS,
        header_values=HEADER_VALUES,
        ports=16,
        port_rate=100 * GBPS,
        port_split=4,  # the four lanes of 25 Gb/s
        loopbacks=LOOPBACKS,
        loopback_rate=100 * GBPS,  # assumption: as fast as a port of four lanes
        sources=(
            "12 stages: p4c Target::Tofino; 4 pipes, ports: Barefoot's slides at SIGCOMM 2018",
            *SHARED_SOURCES,
            "assumption: two loopback ports per pipe, 100 Gb/s each (64 and 68 in p4app-switchML's controller)",
        ),
    )


@hardware
def tofino_2(pipes: int = 4) -> Hardware:
    """Tofino 2: 20 stages, 8 ports of 400 Gb/s in each pipe.

    Parameters
    ----------
    pipes : int
        4 on the largest model.

    Returns
    -------
    Hardware

    References
    ----------
    p4c, class Target::JBay: 20 stages. Packet Pushers, "Barefoot Networks announces a new 12.8 Tb/s Tofino", 2018:
    32 x 400 GbE, 128 x 100 GbE or 256 x 50 GbE; over four pipes 8 ports each.
    """
    return Hardware(
        f"tofino_2{'' if pipes == 4 else f' with {pipes} pipes'}",
        pipes,
        stages=20,
        arrays_per_stage=ARRAYS_PER_STAGE,
        entry_bytes=ENTRY_BYTES,
        sram_blocks=SRAM_BLOCKS,
        register_blocks=REGISTER_BLOCKS,
        block_bytes=BLOCK_BYTES,
        spare_blocks=SPARE_BLOCKS,
        header_values=HEADER_VALUES,
        ports=8,
        port_rate=400 * GBPS,
        port_split=8,
        loopbacks=LOOPBACKS,
        loopback_rate=200 * GBPS,
        sources=(
            "20 stages: p4c Target::JBay; 32 x 400 Gb/s on 4 pipes: announcement of 2018",
            *SHARED_SOURCES,
            "assumption: a ninth port group of 400 Gb/s per pipe leads back, counted as two loopback ports of 200 Gb/s",
        ),
    )
