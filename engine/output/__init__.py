"""From raw frames to encoded ones that leave at their playout time."""
