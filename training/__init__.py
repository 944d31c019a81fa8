"""Recipes, each in a folder of its own. A client of engine and models; nothing imports it."""
