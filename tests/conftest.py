"""Triton's kernels run under its interpreter in this process; it reads the switch when it is first imported."""

import os

os.environ["TRITON_INTERPRET"] = "1"
