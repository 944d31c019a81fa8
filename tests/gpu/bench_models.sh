#!/bin/sh
# Times every step of cards on a machine with an NVIDIA GPU, in one command from a fresh clone:
#
#     tests/gpu/bench_models.sh [CARD ...]          default: self-forcing-1.3b longlive-1.3b
#
# Installs into .venv, pulls each card's published weights into $WORLDROOM_WEIGHTS (default: ./runs/weights), checks
# them, then prints ms per step and per chunk, frames a second and bytes: in bf16, with 8-bit keys and values, and
# compiled. The tiny cards are timed first, so a machine without the weights' room says something too.
set -eu
cd "$(dirname "$0")/../.."
weights=${WORLDROOM_WEIGHTS:-runs/weights}
unset HF_HUB_OFFLINE
make setup
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv
.venv/bin/worldroom bench model
for card in ${*:-self-forcing-1.3b longlive-1.3b}; do
  .venv/bin/worldroom cards pull "$card" --into "$weights/$card"
  .venv/bin/worldroom cards check "$card" "$weights/$card"
  for how in "--precision bf16" "--precision bf16-kv8" "--precision fp8" "--precision bf16 --compiled"; do
    # shellcheck disable=SC2086 - several words on purpose
    .venv/bin/worldroom bench model "$card" --checkpoint "$weights/$card" --chunks 20 $how
  done
done
