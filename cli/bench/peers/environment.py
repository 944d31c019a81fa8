"""The environment in which fastrtc runs: its own, so that nothing of it comes into ours."""

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3]
INSTALL_S = 300.0


class NotInstalled(RuntimeError):
    """Why fastrtc is not here."""


def root(folder: Path) -> Path:
    """A folder in which `worldroom` is found and nothing else is."""
    found = folder / "root"
    found.mkdir(parents=True, exist_ok=True)
    link = found / "worldroom"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(PACKAGE, target_is_directory=True)
    return found


def fastrtc_python(folder: Path) -> Path:
    """The interpreter of that environment, which the first call makes; raises `NotInstalled`."""
    home = folder / "fastrtc"
    python, done = home / "bin" / "python", home / "installed"
    if done.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    try:
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(python), "-m", "pip", "install", "--quiet", "fastrtc")
        _run(str(python), "-c", "import fastrtc")
    except (OSError, subprocess.SubprocessError) as error:
        raise NotInstalled(f"fastrtc cannot be installed here ({type(error).__name__})") from None
    done.touch()
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=INSTALL_S, capture_output=True)
