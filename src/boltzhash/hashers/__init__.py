"""The hashers, one paper per file, the one table from their names to their classes, and :func:`load`."""

from pathlib import Path

from boltzhash.errors import ModelError
from boltzhash.hashers.ammi import AMMI as AMMI
from boltzhash.hashers.bmsh import BMSH as BMSH
from boltzhash.hashers.corrsh import CorrSH as CorrSH
from boltzhash.hashers.doc2hash import Doc2hash as Doc2hash
from boltzhash.hashers.gmsh import GMSH as GMSH
from boltzhash.hashers.itq import ITQ as ITQ
from boltzhash.hashers.lsh import LSH as LSH
from boltzhash.hashers.mish import MISH as MISH
from boltzhash.hashers.nash import NASH as NASH
from boltzhash.hashers.pairrec import PairRec as PairRec
from boltzhash.hashers.rbsh import RBSH as RBSH
from boltzhash.hashers.self_taught import SelfTaughtHashing as SelfTaughtHashing
from boltzhash.hashers.semantic_hasher import SemanticHasher as SemanticHasher
from boltzhash.hashers.shared.base import Hasher as Hasher
from boltzhash.hashers.shared.settings import Bound as Bound
from boltzhash.hashers.shared.settings import Graph as Graph
from boltzhash.hashers.shared.settings import Neighbours as Neighbours
from boltzhash.hashers.shared.settings import Network as Network
from boltzhash.hashers.shared.settings import Networks as Networks
from boltzhash.hashers.shared.settings import Objective as Objective
from boltzhash.hashers.shared.settings import Text as Text
from boltzhash.hashers.shared.settings import Training as Training
from boltzhash.hashers.snuh import SNUH as SNUH
from boltzhash.hashers.spectral import SpectralHashing as SpectralHashing
from boltzhash.hashers.stacked_rbm import StackedRBM as StackedRBM
from boltzhash.hashers.vdsh import VDSH as VDSH
from boltzhash.hashers.wish import WISH as WISH
from boltzhash.storage.folders import read_model

_KINDS: list[type[Hasher]] = [
    SemanticHasher,
    CorrSH,
    NASH,
    BMSH,
    VDSH,
    GMSH,
    Doc2hash,
    RBSH,
    PairRec,
    SNUH,
    WISH,
    AMMI,
    MISH,
    ITQ,
    LSH,
    SelfTaughtHashing,
    SpectralHashing,
    StackedRBM,
]
HASHERS = {kind.__name__: kind for kind in _KINDS}
SETTINGS = [Text, Neighbours, Network, Networks, Objective, Bound, Graph, Training]


def load(folder: str | Path) -> Hasher:
    """Load a model that was saved with ``save``.

    Nothing in the folder is executed. Raises :class:`boltzhash.errors.ModelError` if the folder is not
    a model, is damaged, or has another format.
    """
    kind, params, arrays, words = read_model(Path(folder))
    if kind not in HASHERS:
        raise ModelError(f"{folder} holds a {kind!r}; this boltzhash knows {', '.join(HASHERS)}")
    found = {
        f"{name}__{field}" if field else name
        for name, value in params.items()
        for field in (value if isinstance(value, dict) else [""])
    }
    expected = {*HASHERS[kind].param_names()} - HASHERS[kind].RECIPE.keys()
    differ = sorted(found ^ expected)
    if differ:
        raise ModelError(
            f"{folder} is a {kind} with other settings than this boltzhash has "
            f"({', '.join(differ)}): fit it again"
        )
    try:
        return HASHERS[kind]._restore(params, arrays, words)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder} does not fit together: {error}") from error
