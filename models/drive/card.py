"""The drive card: a painted driving world of 128 x 80 pictures, one frame per chunk.

Its state is an explicit memory, taught from the simulator's and moved on by a network (recall.py); bends and objects
come from a random process written by hand (innovations.py); a known camera (camera.py) projects them and the
transformer paints that.

Sizes are written here once, as numbers; the runtime builds its networks from them and the weight files must fit.
"""

from pathlib import Path

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.placement import Placement, realtime
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from ..shared.road.look import PROMPT_CHARS
from .memory import MEMORY_TOKENS, PICTURE_TOKENS

TOKENS = PICTURE_TOKENS + MEMORY_TOKENS
WIDTH, HEADS, LAYOUT, WINDOW = 160, 5, "STSTSTS", 11
PICTURE_WIDTH, PICTURE_HEIGHT, SCALE, FPS = 128, 80, 4, 24
KV_BYTES_PER_ENTRY = 2 * LAYOUT.count("T") * TOKENS * WIDTH * 4
"""float32 K and V [temporal blocks, tokens, width] of one frame."""
WEIGHTS = Path(__file__).parent / "weights"

RECIPE = RecipeSpec(
    name="drive-2",
    sampler="flow-x0",
    sigmas=((1.0,), (1.0, 0.5), (1.0, 0.67, 0.33), (1.0, 0.75, 0.5, 0.25)),
    precisions=(Precision.FP32,),
    default=RuntimeChoice("flow-x0", 1, Precision.FP32),
    parents=("drive-autoencoder-1", "drive-paint-1"),
    data="simulated driving, 60 looks (training/drive/simulator)",
    command="worldroom train drive",
    method=Method.FLOW,
    inexact=0.5,
)


def drive_card(exact: bool = True) -> ModelCard:
    """`exact` False owes the recipe's tolerance."""
    return ModelCard(
        name="drive",
        version="2",
        family="drive",
        title="Drive: a painted road",
        about="A road without an end, in any weather, light and land that you can put into words.",
        prompt_chars=PROMPT_CHARS,
        components=(
            ComponentSpec("transformer", "predicts frames", 2_810_450, "transformer.safetensors", "Apache-2.0"),
            ComponentSpec("autoencoder", "pictures and latents", 755_412, "autoencoder.safetensors", "Apache-2.0"),
            ComponentSpec("text", "free text to a look", 0, "text.safetensors", "Apache-2.0"),
            ComponentSpec("openings", "first latents of each look", 0, "openings.safetensors", "Apache-2.0"),
        ),
        loops=(LoopSpec("chunk_rollout", (StepKind.DENOISE, StepKind.COMMIT_DENOISE, StepKind.DECODE)),),
        recipe=RECIPE,
        parity=Parity(exact, 0.0 if exact else RECIPE.inexact),
        frame=FrameSpec(PICTURE_WIDTH, PICTURE_HEIGHT, SCALE, FPS, per_chunk=1),
        controls=(
            Control("left", ("ArrowLeft", "KeyA")),
            Control("right", ("ArrowRight", "KeyD")),
            Control("gas", ("ArrowUp", "KeyW")),
            Control("brake", ("ArrowDown", "KeyS")),
        ),
        cache=CacheSpec(ring=WINDOW + 1, bytes_per_entry=KV_BYTES_PER_ENTRY),
        suggestions=(
            "a sunny coast road",
            "neon city at night in the rain",
            "desert at sunset",
            "snowy mountains at dawn",
            "misty forest in the morning",
        ),
        program=realtime(decode=Placement.AUX),
    )
