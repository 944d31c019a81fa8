"""What a step is: the contract, the catalog, what families share, and one folder a family."""
