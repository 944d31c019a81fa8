"""What training programs put around the names of weights, taken off again: one prefix of the file, and wrappers.

model._fsdp_wrapped_module.blocks.0.weight        FSDP        _orig_mod.blocks.0.weight      torch.compile
module.model.blocks.0.weight                      DDP         model.blocks.0.weight          a module around it
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from .stored import StoredTensor

_WRAPPERS = re.compile(r"(?:(?<=\.)|^)(?:_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module)\.|^module\.")


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """`table`: plain names -> entries. `stored`: plain names -> names in the file. `lead`: what most begin with."""

    table: Mapping[str, StoredTensor]
    stored: Mapping[str, str]
    lead: str

    def named(self, plain: str) -> str:
        """The name as the file has it, or would have it."""
        return self.stored.get(plain, self.lead + plain)


def unwrapped(table: Mapping[str, StoredTensor], wanted: Set[str], prefixes: Sequence[str]) -> Unwrapped:
    """The table without wrappers and without that one of `prefixes`, or none, under which most of `wanted` is there."""
    bare = {key: _WRAPPERS.sub("", key) for key in table}

    def stripped(prefix: str) -> dict[str, str]:
        return {name.removeprefix(prefix): key for key, name in bare.items()}

    stored = max((stripped(prefix) for prefix in ("", *prefixes)), key=lambda names: len(wanted & names.keys()))
    leads = Counter(key.removesuffix(plain) for plain, key in stored.items() if key.endswith(plain))
    lead = leads.most_common(1)[0][0] if leads else ""
    return Unwrapped({plain: table[key] for plain, key in stored.items()}, stored, lead)
