"""How `dream` is trained: a many-step teacher, then a few-step student on its own rollouts."""
