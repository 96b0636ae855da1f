"""Published numbers of what is modelled that have no row, and why not: what was published, and the reason."""

NOT_COVERED = (
    ("training throughput (SwitchML figure 4, BytePS figures 15 and 16, OmniReduce end to end, ByteScheduler figures 10"
     " to 12, KungFu, Poseidon, Parallax, Espresso, GRID, GOAT, ZEN)",
     "the times of computation, or the batches, were not published with it"),
    ("NetAI'20's and Horovod's scaling, and PyTorch DDP's figures 6, 7 and 10",
     "only where traces lie beside the checkout, in shared/data/traces"),
    ("PyTorch DDP's figure 9, time by number of GPUs",
     "its 16 GPUs take 0.218 s where figure 7's take 0.117 s: another set-up, of which no bandwidth was published"),
    ("Horovod's 90 % for Inception-V3 and ResNet-101", "no backward pass of theirs is at hand"),
    ("ByteScheduler's best credit of 75 to 80 MB", "what a small credit costs its all-reduce was not published"),
    ("Lina's shares of the all-to-all, figure 7 and speed-ups", "the sizes of tokens and gradients were not at hand"),
    ("cross-mesh resharding, up to 10 times", "which case, and how many hosts it has, was not in what we read"),
    ("Optimus-CC, Chimera and Gemini, whole trainings", "only their volumes, bubbles and formulas are modelled"),
    ("PipeDream's speed-ups", "activations, and bandwidths of its clusters, were not in what we read"),
    ("CASSINI's marks of ECN, its snapshots 4 and later, and adjustments per minute",
     "congestion control is not modelled; profiles, and how iterations jitter, were not published"),
    ("CASSINI's other mixes of jobs (figures 12 to 16)", "as figure 11, which has rows; traces were not published"),
    ("Crux's contention of GPT with BERT (1.53 and 1.70 s), its testbed, its trace and 36.3 % of jobs at risk",
     "what they send, and over which links, was not in what we read; the trace must be downloaded"),
    ("Crux's choice of paths, 97.69 % of the best", "the cases were drawn, how is not known"),
    ("completion times under Muri, Themis, Tiresias, Gandiva, Pollux, Synergy",
     "policies are modelled in their essence, on machines and traces that are not theirs"),
    ("MLTCP, up to 2 and 4 times", "jobs and rates were not in what we read"),
    ("ATP with collisions between jobs (the A2TP artifact)", "the round trip time, which decides, was not published"),
    ("OmniReduce over DPDK", "made on another NIC than its testbed's, with a series plotted twice"),
    ("what our notes on the literature hold from memory (such as ZeRO-Infinity's bandwidths)", "no source was at hand"),
)  # fmt: skip
