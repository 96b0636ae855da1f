"""What communication libraries cost on links and GPUs: NCCL's rules and primitives, measured presets of others."""
