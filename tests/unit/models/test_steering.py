"""Controls become what the weights were trained with; an opening picture and a refusal say what is expected."""

import numpy as np
import pytest
from worldroom.models import catalog
from worldroom.models.contract.conditions import Conditions
from worldroom.models.contract.loop import Ask
from worldroom.models.matrix_game.actions import action
from worldroom.models.matrix_game.loop import MatrixGameLoop
from worldroom.models.matrix_game.spec import Mode, tiny
from worldroom.models.waypoint.controls import control_vector
from worldroom.models.weights import WeightsError


@pytest.mark.parametrize(
    ("mode", "controls", "pointer", "keyboard", "mouse"),
    [
        (Mode.UNIVERSAL, (1, 0, 0, 1, 0, 0, 0, 0), (0, 0), [1, 0, 0, 1], [0, 0]),
        (Mode.UNIVERSAL, (0, 0, 0, 0, 1, 0, 0, 0), (0.02, 0), [0, 0, 0, 0], [0.1, 0.02]),
        (Mode.UNIVERSAL, (0, 0, 0, 0, 0, 0, 1, 0), (-3, 5), [0, 0, 0, 0], [-0.1, -0.1]),
        (Mode.GTA, (1, 0, 1, 0), (0, 0), [1, 0], [0, -0.1]),
        (Mode.TEMPLE_RUN, (0, 0, 0, 0, 0, 0), (0, 0), [1, 0, 0, 0, 0, 0, 0], []),
        (Mode.TEMPLE_RUN, (0, 0, 0, 1, 0, 1), (1, 1), [0, 0, 0, 0, 1, 0, 0], []),
    ],
)
def test_matrix_game_actions(
    mode: Mode, controls: tuple[float, ...], pointer: tuple[float, float], keyboard: list[float], mouse: list[float]
) -> None:
    keys, motion = action(mode, controls, pointer)
    np.testing.assert_allclose(keys, keyboard)
    np.testing.assert_allclose(motion, mouse, atol=1e-7)


def test_waypoint_buttons_mouse_and_scroll() -> None:
    vector = control_vector((1, 0, 0, 0, 1, 0, 0, 0, 1), (0.25, -0.5))
    assert np.flatnonzero(vector[:256]).tolist() == [0x20, 0x57]
    assert vector[256:].tolist() == [0.25, -0.5, -1.0]


def ask(opening: np.ndarray | None, steps: int = 3) -> Ask[object]:
    conditions = Conditions(0, (0.0,) * 8, (0.0, 0.0), (), 0, 0)
    return Ask(1, 0, 0, steps, conditions, (), None, 0, opening)


def test_an_opening_picture_must_be_of_the_cards_size() -> None:
    loop = MatrixGameLoop(tiny())
    state = loop.init(ask(np.full((2, 64, 96, 3), 7, np.uint8)))  # type: ignore[arg-type]
    assert state.opening_HWC is not None and state.opening_HWC.shape == (64, 96, 3)
    with pytest.raises(ValueError, match=r"first frames are uint8 \[F, 64, 96, 3\], got uint8 \[1, 60, 96, 3\]"):
        loop.init(ask(np.zeros((1, 60, 96, 3), np.uint8)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="these weights make 3 steps, asked for 50"):
        loop.init(ask(None, steps=50))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ("waypoint-1.1-small", "cannot be loaded, these are not public: the names of the tensors"),
        ("matrix-game-2-gta", "are not here: `worldroom cards pull matrix-game-2-gta`"),
        ("anyflow-far-14b", "are not here: `worldroom cards pull anyflow-far-14b`"),
    ],
)
def test_published_cards_without_weights_say_what_to_do(card: str, says: str) -> None:
    with pytest.raises(WeightsError) as error:
        catalog.load(card)
    assert says in str(error.value)
