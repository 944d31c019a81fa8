"""The contract between models and the engine. Imports no tensor library."""
