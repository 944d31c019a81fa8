"""What every test's process needs set before anything else.

Triton's kernels run under its interpreter here; it reads the switch when it is first imported. A shell that starts the
tests in the background has them ignore SIGINT, and the servers they start would inherit that.
"""

import os
import signal

os.environ["TRITON_INTERPRET"] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)
