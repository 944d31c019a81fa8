"""What every test's process needs set before anything else; and `one_thread` for who asks for it.

Triton's kernels run under its interpreter here; it reads the switch when it is first imported. A shell that starts the
tests in the background has them ignore SIGINT, and the servers they start would inherit that.
"""

import os
import signal
from collections.abc import Iterator

import pytest

os.environ["TRITON_INTERPRET"] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch works in one thread while the tests of a file run."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
