"""What NCCL launches: its rules for channels, chunks and slices, and the schedules that follow from them."""
