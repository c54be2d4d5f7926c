class Tokens:
    """What stands between blanks, numbered as it comes."""

    def __init__(self) -> None: ...
    def numbers(self, texts: list[str]) -> tuple[bytearray, bytearray, list[str]]:
        """Numbers of the tokens (int32), how many each text has (int64), and the tokens that are new.

        The new ones have the numbers that follow those known before.
        """
