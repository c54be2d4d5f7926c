class Vocabulary:
    """Words, and how often they stand in texts. One that grows must not be in use elsewhere."""

    def __init__(self, words: list[str]) -> None: ...
    def words(self) -> list[str]: ...
    def count(
        self, texts: list[str], classes: bytes | None, grow: bool = False
    ) -> tuple[bytearray, bytearray, bytearray]:
        """Counts (float64), numbers of words in order (int32) and row ends (int64), as CSR has them.

        Texts are ASCII, or normalised and casefolded; ``classes`` holds the class of every code
        point and may be None where all are ASCII.
        """
