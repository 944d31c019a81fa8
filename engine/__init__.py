"""When work runs: the door, the loop that drives chunks, and what decides where, when and with whom a step runs."""
