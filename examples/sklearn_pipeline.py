"""A hasher in a scikit-learn pipeline: how many bits does a classifier of topics need?

    python sklearn_pipeline.py

Every hasher is a scikit-learn estimator. The classifier sees nothing of a text but its code, and a grid
search tries three lengths.
"""

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from boltzhash import ITQ
from boltzhash.codes import unpack
from boltzhash.corpus.docstrings import docstring_corpus

LENGTHS = (8, 16, 64)

# Which of these three packages does a docstring come from? Its first line is its name: leave it out.
packages = ("numpy", "scipy", "sklearn")
documents = [d for d in docstring_corpus() if str(d.id).startswith(packages)][::3]
texts = [document.text.partition("\n")[2] for document in documents]
labels = [str(document.id).partition(".")[0] for document in documents]
texts, test_texts, labels, test_labels = train_test_split(texts, labels, random_state=0)

pipeline = make_pipeline(
    ITQ(),
    FunctionTransformer(unpack),  # packed bytes to one column per bit
    LogisticRegression(max_iter=1000),
)
search = GridSearchCV(pipeline, {"itq__n_bits": list(LENGTHS)}, cv=3).fit(texts, labels)

for bits, accuracy in zip(LENGTHS, search.cv_results_["mean_test_score"], strict=True):
    print(f"{bits:>4} bits: accuracy {accuracy:.2f} in cross-validation")
print(f"the best of them on {len(test_texts)} texts it has not seen: ", end="")
print(f"accuracy {search.score(test_texts, test_labels):.2f}")
