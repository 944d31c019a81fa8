"""The SDK as an npm package: what is in it, and that a program in TypeScript finds its types."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import worldroom.clients.web

WEB = Path(worldroom.clients.web.__file__).parent
PROGRAM = """
import { connect, SteerError, type Room } from 'worldroom';
import { throughLiveKit } from 'worldroom/livekit';
import { WorldroomPlayer } from 'worldroom/player';

const room: Room = connect('https://host/r/cup', { token: 't', way: throughLiveKit({ Room: class {} }) });
const chunk: Promise<number> = room.prompt('snow', { transition: 'cut' });
room.on('welcome', (welcome) => console.log(welcome.controls[0]?.keys));
room.on('track', (track) => console.log(track.kind));
export const player: WorldroomPlayer | null = document.querySelector('worldroom-player');
export { chunk, SteerError };
"""


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_pack_makes_a_package_whose_types_a_program_finds(tmp_path: Path) -> None:
    sdk, tsc = tmp_path / "web" / "sdk", WEB / "node_modules" / "typescript" / "bin" / "tsc"
    shutil.copytree(WEB / "sdk", sdk, ignore=shutil.ignore_patterns("types"))
    shutil.copy(WEB / "tsconfig.json", tmp_path / "web")
    (tmp_path / "web" / "node_modules").symlink_to(WEB / "node_modules")
    packed = subprocess.run(["npm", "pack", "--json"], cwd=sdk, capture_output=True, text=True, timeout=120)
    assert packed.returncode == 0, packed.stderr
    told = json.loads(packed.stdout[packed.stdout.index("[") :])[0]
    files = {each["path"] for each in told["files"]}
    assert {"README.md", "index.js", "livekit.js", "player.js", "types/index.d.ts", "types/player.d.ts"} <= files
    assert not any(each.endswith((".tgz", ".test.js", "tsconfig.types.json")) for each in files)

    program = tmp_path / "program"
    installed = program / "node_modules" / "worldroom"
    installed.mkdir(parents=True)
    subprocess.run(["tar", "xzf", sdk / told["filename"], "--strip-components=1", "-C", installed], check=True)
    (program / "main.ts").write_text(PROGRAM)
    options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "ES2022", "--moduleResolution", "bundler"]
    done = subprocess.run(
        ["node", tsc, *options, "--lib", "ES2023,DOM,DOM.Iterable", "main.ts"],
        cwd=program,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
