"""What can be wrong with a card or with a family's code, as typed errors that say where to look."""


class CardFault(ValueError):
    """A field of a card that cannot be right; names the card (or the part of it) and the field."""

    def __init__(self, card: str, field: str, problem: str) -> None:
        super().__init__(f"card '{card}', field {field}: {problem}")
        self.card, self.field, self.problem = card, field, problem


class FamilyFault(ValueError):
    """A family of another package that cannot be used; `family` is the name of its entry point."""

    def __init__(self, family: str, problem: str) -> None:
        super().__init__(f"family {family} cannot be used: {problem}")
        self.family, self.problem = family, problem
