"""What training makes of communication: iterations of workers, and queues of gradients."""
