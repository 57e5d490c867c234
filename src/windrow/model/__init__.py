"""What Windrow speaks of, as pure values: no I/O, no clock, no randomness."""
