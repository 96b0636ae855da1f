"""Ways of the flow engine to the same answer, each with an estimate of what it takes."""
