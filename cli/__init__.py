"""The `worldroom` command: one file a command, which assembles the packages below it."""
