"""Settings that belong together: small frozen dataclasses, whose left-out fields are the method's own.

Every method has a recipe, which names them all. ``Text(language="german")`` changes one field of it,
and so does ``set_params(text__language="german")``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from boltzhash.arguments import Constraints, Each, Integer, Number

LEFT_OUT: Any = ...  # the method's recipe has it
TARGET_POWERS = {"tfidf": 1.0, "root-tfidf": 0.5, "words": 0.0}  # of a word's tf-idf
# The names in gradients.ESTIMATORS, which importing would import torch.
ESTIMATORS = (
    *("straight-through", "straight-through-half", "gumbel-softmax"),
    *("arm", "rebar", "relax"),
)


@dataclass(frozen=True, repr=False)
class Group:
    """Base of the groups."""

    constraints: ClassVar[Constraints] = {}

    def named(self) -> dict[str, Any]:
        """The fields that are not left out."""
        return {name: value for name, value in vars(self).items() if value is not LEFT_OUT}

    def changed(self, **changes: Any) -> Self:
        """With other values."""
        return replace(self, **changes)

    def beyond(self, recipe: Group) -> Self:
        """With the fields alone that the recipe has otherwise."""
        others = vars(recipe)
        return type(self)(**{n: v for n, v in self.named().items() if others.get(n, LEFT_OUT) != v})

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self.named().items())
        return f"{type(self).__name__}({named})"


@dataclass(frozen=True, repr=False)
class Text(Group):
    """Describe how texts become tf-idf; see :class:`boltzhash.text.tfidf.TfIdf`.

    Parameters
    ----------
    language : str or None
        The language whose stop words are left out and whose stems count; None for none.
    stem : bool
        Count the spellings of a word ("sort", "sorts", "sorting") as one word.
    stop_words : iterable of str or None
        Your own list, instead of the language's.
    token_pattern : str or None
        A regular expression whose matches in the lower-cased text are the tokens.
    max_words, min_df, max_df
        The vocabulary: its size, the documents in which a word must occur, and the share of documents
        above which a word is left out.
    """

    language: str | None = LEFT_OUT
    stem: bool = LEFT_OUT
    stop_words: Iterable[str] | None = LEFT_OUT
    token_pattern: str | None = LEFT_OUT
    max_words: int = LEFT_OUT
    min_df: int = LEFT_OUT
    max_df: float = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Training(Group):
    """Describe how long, how fast and where a method trains.

    Parameters
    ----------
    epochs : int or None
        Passes over the documents. None is the method's number, within bounds: enough for
        ``least_steps``, and for methods with a word decoder at most 5,000 steps, with a sample of
        100,000 documents if there are more.
    least_steps : int or None
        Steps that small corpora get, unless ``epochs`` is given. None is a quarter of the documents,
        between 250 and 1,000.
    batch_size : int
        Documents per step.
    learning_rate : float
        Of Adam, at its highest.
    learning_rate_decay : {"cosine", "steps"}
        Up over the first epoch and down to 0 along half a cosine, or × .96 every 10,000 steps.
    device : str
        "auto" is a GPU when there is one. Codes are always computed by NumPy.
    """

    constraints: ClassVar[Constraints] = {
        "epochs": [Integer(1), None],
        "least_steps": [Integer(1), None],
        "batch_size": [Integer(1)],
        "learning_rate": [Number(above=0)],
        "learning_rate_decay": ["cosine", "steps"],
    }

    epochs: int | None = LEFT_OUT
    least_steps: int | None = LEFT_OUT
    batch_size: int = LEFT_OUT
    learning_rate: float = LEFT_OUT
    learning_rate_decay: str = LEFT_OUT
    device: str = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Network(Group):
    """Describe the inference network of a method with a word decoder, and how both start.

    Parameters
    ----------
    hidden_units : int
        Of each of the two layers; 0 for no layers: the posterior is linear in the document.
    dropout : float
        Share of the hidden units left out at random while training.
    input_length : float or None
        Length to which every tf-idf row is scaled. Features are centred, and scaled so that their mean
        square length is this. None leaves rows as they are.
    unigram_start : bool
        Start the decoder's bias at the logarithm of how often words occur; False starts it at random.
    """

    constraints: ClassVar[Constraints] = {
        "hidden_units": [Integer(0)],
        "dropout": [Number(at_least=0, below=1)],
        "input_length": [Number(above=0), None],
        "unigram_start": [bool],
    }

    hidden_units: int = LEFT_OUT
    dropout: float = LEFT_OUT
    input_length: float | None = LEFT_OUT
    unigram_start: bool = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Networks(Network):
    """Describe several networks, each of which makes an equal part of the code.

    Parameters
    ----------
    networks : int or None
        They start and drop out differently. Every part must describe the document by itself; their
        Hamming distances add up like votes. None is two for codes of more than 32 bits, one for others
        and for ``rank="full"``.
    """

    constraints: ClassVar[Constraints] = {**Network.constraints, "networks": [Integer(1), None]}

    networks: int | None = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Objective(Group):
    """Describe what a method with a word decoder maximises.

    Parameters
    ----------
    target : {"tfidf", "root-tfidf", "words"}
        What the decoder reconstructs: words weighted by their tf-idf or its square root (scaled to sum
        to the number of different words), or each different word once.
    kl_weight : (float, float)
        First and last value of β, the weight of everything except reconstruction.
    kl_ramp : float
        Share of the epochs over which β goes linearly from its first to its last value.
    decoder_noise : (float, float)
        Standard deviation of the noise added to the code before the decoder, first and last epoch.
    label_weight : float or None
        α, the weight of log p(y | code), for fits with labels. None is 10 times how well words tell
        labels that were held out (Cohen's κ), so that labels which mean nothing change nothing.
    label_likelihood : {"softmax", "sigmoid"}
        Whether p(y | code) is about a label drawn from those of the document, or about which of all
        labels it has.
    label_guesses : bool
        Ask documents without labels for those that a linear classifier guesses, as far as it is sure.
    """

    constraints: ClassVar[Constraints] = {
        "target": [*TARGET_POWERS],
        "kl_weight": [Each(Number(at_least=0), 2, 2)],
        "kl_ramp": [Number(above=0)],
        "decoder_noise": [Each(Number(at_least=0), 2, 2)],
        "label_weight": [Number(at_least=0), None],
        "label_likelihood": ["softmax", "sigmoid"],
        "label_guesses": [bool],
    }

    target: str = LEFT_OUT
    kl_weight: tuple[float, float] = LEFT_OUT
    kl_ramp: float = LEFT_OUT
    decoder_noise: tuple[float, float] = LEFT_OUT
    label_weight: float | None = LEFT_OUT
    label_likelihood: str = LEFT_OUT
    label_guesses: bool = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Bound(Objective):
    """Describe a lower bound with a Boltzmann-machine posterior, and what it is combined with.

    Parameters
    ----------
    bound : {"printed", "rearranged"}
        Eq. 24 of the paper with its two energies, or without. Equal in expectation; the printed one has
        more variance.
    gradient : str
        How the gradient passes through a sampled bit: a name in ``gradients.ESTIMATORS``.
        "straight-through-half" has the factor ½ of the paper's eq. 19.
    prior_groups : int
        0 for fair bits; otherwise the components of a learned Bernoulli-mixture prior, as in
        :class:`boltzhash.BMSH`.
    ranking : float
        Weight of :class:`boltzhash.RBSH`'s ranking loss; 0 for none.
    """

    constraints: ClassVar[Constraints] = {
        **Objective.constraints,
        "bound": ["rearranged", "printed"],
        "gradient": ESTIMATORS,
        "prior_groups": [Integer(0)],
        "ranking": [Number(at_least=0)],
    }

    bound: str = LEFT_OUT
    gradient: str = LEFT_OUT
    prior_groups: int = LEFT_OUT
    ranking: float = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Neighbours(Group):
    """Describe the near documents that a document's code should also stand for.

    Every epoch one of them is drawn: some of its words are asked for as well, and its code should be
    nearer than those of other documents.

    Parameters
    ----------
    count : int or None
        How many are near. None is one in 200 documents, at least 20 and at most 100 (with features 20),
        of few documents no more than a tenth. 0 for none.
    dimensions : tuple of int
        Near by latent semantic analysis with so many dimensions, all of these numbers at once. Not used
        with features, of which it is the cosine of centred rows.
    second_training : bool or None
        Whether a shorter training comes first, whose codes of 64 bits and latent semantics together find
        the neighbours. None lets the corpus choose: yes, if the codes agree better than latent semantics
        on what is near to the two halves of held-out documents (``neighbour_choice_``). No for fewer
        than 2,000 documents, and with features.
    nearness : float or None
        A document draws the ⌊K u^a⌋-th nearest of K, u uniform from 0 to 1. 1 draws evenly, as fits with
        labels always do. None is 2, and 1 for codes of up to 16 bits.
    share : float
        Share of the words asked for that is the neighbour's.
    contrast : float
        Weight, at 32 bits, of telling a document's neighbour from other documents by its code; at m
        bits it is 32 / m of that, since short codes gain more.
    contrast_codes : {"bits", "means"} or None
        What the contrast compares: codes, through whose thresholds the gradient passes as if they were
        not there, or the means of their bits. None is "bits", and "means" for codes of up to 16 bits.
    with_label : float
        In fits with labels, the portion of a document's neighbours drawn from documents of the same
        label.
    """

    constraints: ClassVar[Constraints] = {
        "count": [Integer(0), None],
        "dimensions": [Each(Integer(1), 1)],
        "second_training": [bool, None],
        "nearness": [Number(above=0), None],
        "share": [Number(at_least=0, below=1)],
        "contrast": [Number(at_least=0)],
        "contrast_codes": ["bits", "means", None],
        "with_label": [Number(at_least=0, at_most=1)],
    }

    count: int | None = LEFT_OUT
    dimensions: tuple[int, ...] = LEFT_OUT
    second_training: bool | None = LEFT_OUT
    nearness: float | None = LEFT_OUT
    share: float = LEFT_OUT
    contrast: float = LEFT_OUT
    contrast_codes: str | None = LEFT_OUT
    with_label: float = LEFT_OUT


@dataclass(frozen=True, repr=False)
class Graph(Group):
    """Describe the graph of near documents of :class:`boltzhash.SNUH`.

    Parameters
    ----------
    neighbours : int
        How many of the nearest documents each is joined to, of few documents no more than a tenth; 0 for
        no graph.
    trees : int
        M, the trees that are drawn from the graph.
    tree : {"spanning", "stars"}
        The spanning trees of the paper, or forests of stars, as in its authors' code. A spanning tree
        cannot do without the few edges that join one region of the graph to the next.
    similarity : {"latent", "tfidf"}
        Near by latent semantic analysis at several scales, or by the cosine of tf-idf, as published. Not
        used with features, of which it is the cosine of centred rows.
    correlation : float
        λ, how correlated the prior takes two neighbours to be.
    edge_weight : float
        Weight of the divergence of edges; 1 is the bound of the paper, ½ that of its authors' code.
    """

    constraints: ClassVar[Constraints] = {
        "neighbours": [Integer(0)],
        "trees": [Integer(1)],
        "tree": ["spanning", "stars"],
        "similarity": ["latent", "tfidf"],
        "correlation": [Number(above=0, below=1)],
        "edge_weight": [Number(at_least=0)],
    }

    neighbours: int = LEFT_OUT
    trees: int = LEFT_OUT
    tree: str = LEFT_OUT
    similarity: str = LEFT_OUT
    correlation: float = LEFT_OUT
    edge_weight: float = LEFT_OUT


Recipe = Mapping[str, Group]  # all groups of a method by their names, complete


def with_changes(recipe: Recipe, **changes: Any) -> dict[str, Group]:
    """A recipe with fields changed, each named ``group__field``.

    >>> with_changes({"text": Text("english", stem=False)}, text__stem=True)
    {'text': Text(language='english', stem=True)}
    """
    found = dict(recipe)
    for name, value in changes.items():
        group, _, field = name.partition("__")
        found[group] = found[group].changed(**{field: value})
    return found


def completed(name: str, given: object, recipe: Group) -> Group:
    """A group as it was given, its left-out fields as the recipe has them."""
    if given is None:
        return recipe
    if not isinstance(given, Group) or not isinstance(recipe, type(given)):
        raise ValueError(f"{name} must be a {type(recipe).__name__} or None, got {given!r}")
    return recipe.changed(**given.named())


def fields_of(recipe: Recipe) -> list[str]:
    """The names ``group__field`` that ``set_params`` takes."""
    return [f"{name}__{field.name}" for name, group in recipe.items() for field in fields(group)]
