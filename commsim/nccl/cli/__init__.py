"""``commsim nccl``."""
