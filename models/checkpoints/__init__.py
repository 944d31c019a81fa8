"""Weights as other people publish them: what a card's files must hold, reading, checking, writing and fetching them."""
