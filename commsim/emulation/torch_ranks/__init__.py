"""torch.distributed in the ranks of an emulation: real tensors, real sums, and the virtual clock."""
