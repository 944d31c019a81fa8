"""Who may come in: API keys, tokens, names and origins, rates. Knows no room's inside and no media."""
