"""The dream card: a driving world of 128 x 80 pictures that its network alone dreams, one frame per chunk.

It is given its own past (the K and V it kept, and recurrent tokens that it moved on itself), keys, a prompt's look and
noise: what is uncertain comes out of noise. The simulator's private labels and drive's camera shaped it in training
(training/dream/README.md) and are not there when it dreams.
Sizes are written here once, as numbers; the runtime builds its networks from them and the weight files must fit.
"""

from pathlib import Path

from ..contract.cache import CacheSpec
from ..contract.card import ComponentSpec, Control, FrameSpec, LoopSpec, ModelCard, Parity
from ..contract.loop import StepKind
from ..contract.placement import Placement, realtime
from ..contract.recipe import Method, Precision, RecipeSpec, RuntimeChoice
from ..shared.road.look import PROMPT_CHARS

PICTURE_TOKENS, REGISTERS, CHANNELS = 40, 3, 32
NOISE = 8  # numbers of noise a frame has beside its picture's
STATE = 128  # numbers of the recurrent tokens
TOKENS = PICTURE_TOKENS + REGISTERS
WIDTH, HEADS, LAYOUT, WINDOW = 160, 5, "STSTSTS", 32
PICTURE_WIDTH, PICTURE_HEIGHT, SCALE, FPS = 128, 80, 4, 24
KV_BYTES_PER_ENTRY = 2 * LAYOUT.count("T") * TOKENS * WIDTH * 4
"""float32 K and V [temporal blocks, tokens, width] of one frame."""
WEIGHTS = Path(__file__).parent / "weights"

RECIPE = RecipeSpec(
    name="dream-1",
    sampler="flow-x0",
    sigmas=((1.0,), (1.0, 0.5), (1.0, 0.75, 0.5, 0.25)),
    precisions=(Precision.FP32,),
    default=RuntimeChoice("flow-x0", 1, Precision.FP32),
    parents=("drive-2", "dream-autoencoder-1", "dream-recurrence-1", "dream-lasting-1", "dream-paint-1"),
    data="simulated driving, 60 looks (training/drive/simulator)",
    command="worldroom train dream",
    method=Method.DISTILLED,
)


def dream_card() -> ModelCard:
    return ModelCard(
        name="dream",
        version="1",
        family="dream",
        title="Dream: a road out of noise",
        about="A road without an end that networks alone dream from their own past, your keys, your words and chance; "
        "softer than the painted one.",
        prompt_chars=PROMPT_CHARS,
        components=(
            ComponentSpec("transformer", "predicts frames", 9_081_343, "transformer.safetensors", "Apache-2.0"),
            ComponentSpec("autoencoder", "pictures and latents", 755_412, "autoencoder.safetensors", "Apache-2.0"),
            ComponentSpec("text", "free text to a look", 0, "text.safetensors", "Apache-2.0"),
            ComponentSpec("openings", "first latents of each look", 0, "openings.safetensors", "Apache-2.0"),
        ),
        loops=(LoopSpec("chunk_rollout", (StepKind.DENOISE, StepKind.COMMIT_DENOISE, StepKind.DECODE)),),
        recipe=RECIPE,
        parity=Parity(exact=True, tolerance=0.0),
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
