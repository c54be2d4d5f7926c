from collections.abc import Callable

class Lines:
    """Lines of texts, and the words in them; ``cut`` says what the words of a token are."""

    def __init__(self, cut: Callable[[str], list[str]]) -> None: ...
    def best(self, text: str, sought: list[str]) -> tuple[str, int]:
        """The line with most of the words, the first of equals, with one blank between its tokens.

        The number says how many characters stand before its first token that has a word; −1: none has.
        """

    def spans(
        self, line: str, sought: list[str], within: Callable[[str], list[tuple[int, int]]]
    ) -> list[tuple[int, int]]:
        """Where words stand that are sought; ``within`` says it of a token that is not ASCII."""
