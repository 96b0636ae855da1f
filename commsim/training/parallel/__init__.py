"""Model parallelism: pipelines, tensors, experts; resharding between meshes."""
