"""What can be read off a simulated picture: where the road is and how many objects stand in view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .palette import HORIZON
from .render import NEAREST
from .road import DEPTH_R, FOCAL, HALF_ROAD, METRE_DISPLACEMENT, OBJECT_ENTRY, ROW_DISPLACEMENT, WIDTH, road_centre
from .world import World

Array = NDArray[np.float32]
CENTRE_ROWS = (38, 46, 58)  # picture rows: 23, 10.5 and 5.8 metres ahead
_ROWS = np.array(CENTRE_ROWS) - HORIZON
_METRES: Array = np.arange(OBJECT_ENTRY + 3, dtype=np.float32)
_BESIDE = HALF_ROAD + 4.0  # metres from the road's middle where objects stand, about


def road_centre_px(world: World) -> Array:
    """Column of the road's middle at CENTRE_ROWS [B, 3]; may lie outside the picture."""
    depth = DEPTH_R[_ROWS]
    metres = road_centre(ROW_DISPLACEMENT[_ROWS], world.curvature(), world.offset_B, world.heading_B, depth)
    return np.asarray(64 + FOCAL * metres / depth, np.float32)


def visible_objects(world: World) -> NDArray[np.int64]:
    """Objects whose middle is inside the picture [B]."""
    centre_BM = road_centre(METRE_DISPLACEMENT, world.curvature(), world.offset_B, world.heading_B, _METRES)
    ahead_BSO = world.object_BSO - world.distance_B[:, None, None]
    shown = (ahead_BSO > NEAREST) & (ahead_BSO < OBJECT_ENTRY + 0.01)
    depth = np.clip(ahead_BSO, NEAREST, OBJECT_ENTRY)
    nearest = np.round(depth).astype(np.int64)
    middle = np.take_along_axis(centre_BM[:, None], nearest.reshape(len(nearest), 2, -1), 2)
    column = 64 + FOCAL * (middle + np.array([-_BESIDE, _BESIDE])[None, :, None]) / depth
    return np.asarray((shown & (column >= 0) & (column < WIDTH)).sum((1, 2)), np.int64)
