"""Published training steps beside our prediction."""
