"""Manifest: where a card's weights are published, in which files, under which names, and what must be in them.

    component 'transformer'          expects   our keys -> shapes           (from the network built without memory)
      layout 'original'              one .pt or .safetensors file           names mapped by `keys`
      layout 'diffusers'             a folder, perhaps sharded              names mapped by its own `keys`

Pure data, no tensor library: `expects` imports it when called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .names import KeyMap

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckpointLayout:
    """One public form of one component's weights.

    `file`: relative to the checkpoint's root: a `.safetensors`, `.pt`, `.pth` or `.bin` file, an `.index.json` of
    shards, or a folder as diffusers saves it. `unwrap`: entries of a `.pt` dictionary to descend into, the first that
    is there (`("generator_ema", "generator")`); () = the file is the table itself. `ignore`: regular expressions of
    public keys that are no weights of ours (buffers, an optimizer's). `prefixes`: what may stand before every key,
    beside nothing at all; the first is how the file was published. `repo`: where `cards pull` finds the file; '' =
    nowhere.
    """

    name: str
    file: str
    keys: KeyMap
    repo: str = ""
    unwrap: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StandIn:
    """A component that does the work of another one, faster and less exactly.

    `error`: measured with the weights of both under a checkpoint's root; raises `WeightsError`. `tolerance`: the
    largest one that the card declares. `measure`: what an error is, in a few words.
    """

    component: str
    tolerance: float
    measure: str
    error: Callable[[Path], float]


@dataclass(frozen=True, slots=True)
class ComponentManifest:
    """What one component must hold. `dtypes`: names as torch spells them ('bfloat16'). `stands_in`: for which other."""

    name: str
    expects: Callable[[], Mapping[str, Shape]]
    layouts: tuple[CheckpointLayout, ...]
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")
    config: Mapping[str, object] = field(default_factory=dict)
    """Written as config.json beside a diffusers export; `_class_name` names the class."""
    stands_in: StandIn | None = None


UMT5, TOKENIZER = ("transformers", "UMT5EncoderModel"), ("transformers", "AutoTokenizer")
TOKENIZER_FILES = (("tokenizer.json", "spiece.model"), ("tokenizer_config.json",))
TEXT_ENCODER_FILES = (
    ("config.json",),
    ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"),
)


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """A folder that another library loads by its own configuration: a prompt encoder, a tokenizer.

    `needs`: of each group of file names one must be there. `config`: what its config.json must say.
    `loads`: library and class that load it.
    """

    name: str
    repo: str
    needs: tuple[tuple[str, ...], ...]
    loads: tuple[str, str]
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that loading a card reads. `revision` is the hub's branch, tag or commit to pull."""

    card: str
    components: tuple[ComponentManifest, ...]
    licence: str
    revision: str = "main"
    folders: tuple[FolderManifest, ...] = ()

    def component(self, name: str) -> ComponentManifest:
        for component in self.components:
            if component.name == name:
                return component
        known = ", ".join(component.name for component in self.components)
        raise LookupError(f"card '{self.card}' has no component '{name}': it has {known}")
