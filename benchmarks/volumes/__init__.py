"""Many seeded attacks from outside: command lines, damaged files, packets, requests and kills, and what went wrong."""
