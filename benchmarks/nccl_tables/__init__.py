"""NCCL's measured tables beside our prediction: machines, peers' models, and the fit of the costs."""
