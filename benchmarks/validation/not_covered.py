"""Published numbers of what is modelled that have no row, and why not: what was published, and the reason."""

NOT_COVERED = (
    ("training throughput (SwitchML figure 4, BytePS figures 15 and 16, OmniReduce end to end, ByteScheduler figures 10"
     " to 12, KungFu, Poseidon, Parallax, Espresso, GRID, GOAT, ZEN)",
     "the computation times or the batch sizes were not published"),
    ("NetAI'20's and Horovod's scaling, and PyTorch DDP's figures 6, 7 and 10",
     "compared only if the traces are in shared/data/traces beside the checkout"),
    ("PyTorch DDP's figure 9, time by number of GPUs",
     "16 GPUs take 0.218 s, but 0.117 s in figure 7: a different set-up, without a published bandwidth"),
    ("Horovod's 90 % for Inception-V3 and ResNet-101", "their backward passes are not available"),
    ("ByteScheduler's best credit of 75 to 80 MB", "the cost of a small credit was not published"),
    ("Lina's shares of the all-to-all, figure 7 and speed-ups", "the sizes of tokens and gradients are not available"),
    ("cross-mesh resharding, up to 10 times", "our sources do not give the case and its number of hosts"),
    ("Optimus-CC, Chimera and Gemini, whole trainings", "only volumes, idle shares and formulas are modelled"),
    ("PipeDream's speed-ups", "our sources do not give the activations and the bandwidths of its clusters"),
    ("CASSINI's ECN marks, its snapshots 4 and later, and adjustments per minute",
     "congestion control is not modelled; profiles and the jitter of iterations were not published"),
    ("CASSINI's other mixes of jobs (figures 12 to 16)", "similar to figure 11, which has rows; traces were not"
                                                         " published"),
    ("Crux's contention of GPT with BERT (1.53 and 1.70 s), its testbed, its trace and 36.3 % of jobs at risk",
     "our sources do not give their traffic and links; the trace must be downloaded"),
    ("Crux's choice of paths, 97.69 % of the best", "the cases were drawn at random, in an unknown way"),
    ("completion times under Muri, Themis, Tiresias, Gandiva, Pollux, Synergy",
     "only the main ideas of the policies are modelled, on other machines and traces"),
    ("MLTCP, up to 2 and 4 times", "our sources do not give jobs and rates"),
    ("ATP with collisions between jobs (the A2TP artifact)", "the round-trip time, which determines the result, was"
                                                             " not published"),
    ("OmniReduce over DPDK", "measured with a different NIC than the testbed's; one series is plotted twice"),
    ("numbers that our notes quote from memory (such as ZeRO-Infinity's bandwidths)", "no source is available"),
)  # fmt: skip
