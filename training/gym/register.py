"""The environments' names. Gymnasium finds them by an entry point; importing `worldroom.training.gym` does the same."""

import gymnasium

MAX_STEPS = 1000


def register() -> None:
    for name, card in (("Drive", "drive"), ("Toy", "toy")):
        id = f"worldroom/{name}-v0"
        if id not in gymnasium.registry:
            gymnasium.register(
                id,
                entry_point="worldroom.training.gym.env:WorldEnv",
                vector_entry_point="worldroom.training.gym.vector:WorldVectorEnv",
                kwargs={"card": card},
                max_episode_steps=MAX_STEPS,
            )
