"""Plans of calls of NCCL and RCCL: what the library would launch on a network, at each size."""
