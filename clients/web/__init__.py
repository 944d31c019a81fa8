"""The page, served as it lies here: no build step, no dependency."""
