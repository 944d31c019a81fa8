"""Examples that learn from what sessions wrote down."""
