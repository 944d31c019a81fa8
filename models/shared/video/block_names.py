"""Names that the layers of a Wan block, and of networks grown from it, have in other programs' files."""

import re

_DIFFUSERS = (
    (re.compile(r"\.self_attn\."), ".attn1."),
    (re.compile(r"\.cross_attn\."), ".attn2."),
    (re.compile(r"\.(q|k|v)$"), r".to_\1"),
    (re.compile(r"\.o$"), ".to_out.0"),
    (re.compile(r"\.ffn\.0$"), ".ffn.net.0.proj"),
    (re.compile(r"\.ffn\.2$"), ".ffn.net.2"),
)


def other_names(layer: str) -> tuple[str, ...]:
    """As diffusers calls it."""
    name = layer
    for pattern, theirs in _DIFFUSERS:
        name = pattern.sub(theirs, name)
    return (name,)
