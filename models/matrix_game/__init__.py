"""Matrix-Game 2.0: a world that starts from one picture and is steered by keys and mouse (2508.13009)."""
