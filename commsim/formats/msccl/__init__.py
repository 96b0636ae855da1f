"""MSCCL's algorithms: steps of thread blocks that a modified NCCL runs on GPUs, as XML."""
