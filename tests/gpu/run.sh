#!/bin/sh
# The day there is a GPU: correctness, prices, sessions held and latency in one command, under ten minutes, without a
# download (published sizes run with drawn weights: all noise, the same work).
#
#     tests/gpu/run.sh [CARD ...]        default: self-forcing-1.3b longlive-1.3b; --dry = tiny cards, any machine
#
# Prints a table and leaves runs/gpu.json. bench_models.sh beside it does the same with the published weights.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p runs
[ -x .venv/bin/worldroom ] || make setup
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv
exec .venv/bin/worldroom bench gpu --into runs/gpu.json "$@"
