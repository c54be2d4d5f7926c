"""Bits explained: what each bit stands for, and in which bits a document agrees with a query.

    python bits_explained.py

A model with a word decoder can say which words each bit makes likelier, on one side and on the other.
"""

from boltzhash import ExactIndex, SemanticHasher, Text, Training
from boltzhash.codes import unpack
from boltzhash.corpus.docstrings import docstring_corpus

# Words of more than 5 % of the documents, such as "returns" and "shape", say little about a topic.
documents = docstring_corpus()[::8]
hasher = SemanticHasher(n_bits=32, text=Text(max_df=0.05), training=Training(epochs=8)).fit(
    document.text for document in documents
)
words_of_bits = hasher.explain(n_words=6)


def words(bit: int, is_on: bool) -> str:
    """The words that the bit makes likelier, the strongest first."""
    side = words_of_bits[bit].up if is_on else words_of_bits[bit].down
    return " ".join(word for word, _ in side)


print("What the first bits stand for")
for bit in range(4):
    print(f"  bit {bit:>2}  on: {words(bit, True)}")
    print(f"         off: {words(bit, False)}")

query = "probability density of a random variable"
codes = hasher.transform(document.text for document in documents)
query_code = hasher.transform([query])
query_bits = unpack(query_code)[0]
order = ExactIndex(codes).search(query_code, k=len(codes)).ids[0]

print(f"\nQuery: {query}")
for what, row in {"nearest": order[0], "farthest": order[-1]}.items():
    bits = unpack(codes[[row]])[0]
    agrees = bits == query_bits
    print(f"The {what} document is {documents[row].id}: {agrees.sum()} of 32 bits agree")
    for bit in range(6):
        verdict = "agrees" if agrees[bit] else "differs"
        print(f"  bit {bit:>2} {verdict:<7}  {words(bit, bits[bit])}")
