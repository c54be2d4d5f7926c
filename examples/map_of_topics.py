"""A map of topics: every document a point, near those it is like, and what the regions are about.

    pip install 'boltzhash[train]' matplotlib
    python map_of_topics.py

The places come from the codes alone, 8 bytes a document; the words beside a region are those that its
documents use more than all others do. The page of `boltzhash serve` has a map that you can walk in.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE

from boltzhash import SemanticHasher, Text, Training
from boltzhash.codes import unpack
from boltzhash.corpus.docstrings import docstring_corpus

N_REGIONS = 10
documents = docstring_corpus()[::8]
texts = [document.text for document in documents]
packages = [str(document.id).partition(".")[0] for document in documents]

# Words of more than 5 % of the documents, such as "returns" and "shape", say little about a topic.
hasher = SemanticHasher(n_bits=64, text=Text(max_df=0.05), training=Training(epochs=8)).fit(texts)
bits = unpack(hasher.transform(texts))

# In two dimensions, neighbours by Hamming distance stay neighbours as far as they can.
places = TSNE(metric="hamming", init="random", random_state=0).fit_transform(bits)
regions = KMeans(N_REGIONS, n_init=4, random_state=0).fit_predict(places)

counter = TfidfVectorizer(stop_words="english", token_pattern=r"[a-z]{3,}", min_df=5, max_df=0.1)
weights = counter.fit_transform(texts)
names = counter.get_feature_names_out()


def words_of(is_inside: np.ndarray) -> list[str]:
    """The words whose weight inside is most above that outside."""
    more = weights[is_inside].mean(axis=0) - weights[~is_inside].mean(axis=0)
    return [str(names[column]) for column in np.argsort(-np.asarray(more).ravel())[:3]]


figure, axes = plt.subplots(figsize=(9, 7), layout="constrained")
libraries = {"numpy": "tab:blue", "scipy": "tab:orange", "sklearn": "tab:green"}
colours = [libraries.get(package, "lightgrey") for package in packages]
axes.scatter(places[:, 0], places[:, 1], c=colours, s=9)
for library, colour in {**libraries, "the standard library": "lightgrey"}.items():
    axes.scatter([], [], c=colour, label=library)
axes.legend(loc="lower right", frameon=False)
axes.set_axis_off()

print(f"{len(documents)} docstrings, {N_REGIONS} regions")
for region in np.argsort(-np.bincount(regions)):
    is_inside = regions == region
    words = words_of(is_inside)
    print(f"{is_inside.sum():>4}  {' '.join(words)}")
    x, y = places[is_inside].mean(axis=0)
    axes.text(x, y, "\n".join(words), ha="center", va="center", fontweight="bold")
figure.savefig("map_of_topics.png", dpi=100)
print("drawn in map_of_topics.png")
