"""The simulator that `drive` learned from: a road with five biomes, drawn on a CPU."""
