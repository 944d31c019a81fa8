"""Which step runs next, as pure layers over a price table. Knows no device and no clock."""
