"""Ways to share a model among GPUs: pipelines, tensors, experts; and from one mesh to another."""
