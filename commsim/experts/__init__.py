"""What libraries of expert parallelism cost: DeepEP's kernels and TensorRT-LLM's, from constants of few kinds."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()
