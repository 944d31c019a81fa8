"""Sessions as data sets: what their journals and films hold, in the formats that people train from."""
