"""What holds Wan to its word: the straight-line golden, rollouts against it, narrow and compiled forms, the checks."""
