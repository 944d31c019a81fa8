"""The memory of a frame: what a few pixels cannot hold exactly, dreamed along with the picture as three more tokens.

    token 40 (car)        [ speed 2 | offset | heading | lean | brake | stripes 4 | skyline 6 | bends ahead 16 ]
    token 41, 42 (sides)  objects beside the road, left and right: 32 places ahead, +-MARK by kind, 0 where none stands

In training they come from the simulator; in a dream `recall.py` moves them on: learned dynamics, no simulator at run
time. `camera.py` shows each picture token what of them it sees; a blurred picture cannot lose them. This file holds
the layout and the units alone.
"""

from __future__ import annotations

MEMORY_TOKENS, PICTURE_TOKENS, CHANNELS = 3, 40, 32
TOKEN_ROWS, TOKEN_COLUMNS, TOKEN_PIXELS = 5, 8, 16
HORIZON, FOCAL, CAMERA, HALF_ROAD = 32, 70.0, 2.2, 3.5  # the camera that every picture was taken with
STRIPE = 9.0  # metres from one lane mark to the next
MARK = 2.0  # what stands for an object
OFFSET_UNIT, HEADING_UNIT, BEND_UNIT, STRIPE_UNIT = 2.0, 1 / 6, 0.012 / 1.6, 1 / 1.4
SPEED_MIDDLE, SPEED_UNIT = 14.0, 7.0
SPEED, OFFSET, HEADING, LEAN = 0, 2, 3, slice(4, 6)  # channels of the car's token; with the lean goes the brake
STRIPES, SKYLINE, BENDS = slice(6, 10), slice(10, 16), slice(16, 32)
BEND_METRES = (0, 2, 4, 7, 10, 13, 17, 21, 25, 29, 33, 38, 43, 48, 53, 58)
PLACE_METRES = tuple(1.0 + 47.0 * (i / (CHANNELS - 1)) ** 1.5 for i in range(CHANNELS))
SPEED_BAR = (3.0, 4 / 3)  # pixels from the left, pixels for each m/s
PANORAMA = 192  # columns of the skyline until it repeats
