"""`worldroom bench records`: what journal, films, archive and exports cost, and what faults of their stores do."""
