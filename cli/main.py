"""The `worldroom` command."""


def main() -> None:
    print("worldroom")
