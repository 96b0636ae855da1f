"""Training workloads: iterations of workers, queues of gradients, several jobs on one network."""
