"""Numbers that describe a network: distances, oversubscription, bisection."""
