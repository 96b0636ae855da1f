"""What published systems do beyond that, each as a small policy or generator of traffic."""
