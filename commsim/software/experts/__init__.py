"""What libraries of expert parallelism cost: DeepEP's kernels and TensorRT-LLM's, from constants of few kinds."""
