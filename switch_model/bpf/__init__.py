"""A SwitchML switch inside the Linux kernel: a classifier at the ports' ingress, with its slots in maps."""
