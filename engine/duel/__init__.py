"""Two ways to share one device, run on one recorded day of sessions: by step, or by request. Pure; nothing is slept."""
