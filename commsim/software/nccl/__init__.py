"""What NCCL itself would choose on a network, and why."""
