#!/bin/sh
# What the image installs, as a script of its own so that it can be tried in any clean folder without Docker.
# install.sh SOURCE VENV: the server with its embedded journal from SOURCE into VENV, at the pinned versions.
set -eu
python3 -m venv "$2"
"$2/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --constraint "$1/constraints.txt" "$1[server,embedded,livekit]"
"$2/bin/worldroom" version
