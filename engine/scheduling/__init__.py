"""Which step runs next, as pure functions over a price table. Knows no device and no clock."""
