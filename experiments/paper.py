"""The figures of the paper's tables: precision of the top 100, VDSH's files, best epoch on test."""

from __future__ import annotations

# corpus → method → precision at 8, 16, 32, 64 and 128 bits; None where the paper gives none.
TABLES: dict[str, dict[str, tuple[float | None, ...]]] = {
    "tmc": {
        "LSH": (0.4388, 0.4393, 0.4514, 0.4553, 0.4773),
        "StackedRBM": (0.4846, 0.5108, 0.5166, 0.5190, 0.5137),
        "SpectralHashing": (0.5807, 0.6055, 0.6281, 0.6143, 0.5891),
        "SelfTaughtHashing": (0.3723, 0.3947, 0.4105, 0.4181, 0.4123),
        "VDSH": (0.4330, 0.6853, 0.7108, 0.4410, 0.5847),
        "NASH": (0.5849, 0.6573, 0.6921, 0.6548, 0.5998),
        "BMSH": (None, 0.7062, 0.7481, 0.7519, 0.7450),
        "CorrSH": (0.6959, 0.7243, 0.7534, 0.7606, 0.7632),
    },
    "reuters": {
        "LSH": (0.2802, 0.3215, 0.3862, 0.4667, 0.5194),
        "StackedRBM": (0.5113, 0.5740, 0.6154, 0.6177, 0.6452),
        "SpectralHashing": (0.6080, 0.6340, 0.6513, 0.6290, 0.6045),
        "SelfTaughtHashing": (0.6616, 0.7351, 0.7554, 0.7350, 0.6986),
        "VDSH": (0.6859, 0.7165, 0.7753, 0.7456, 0.7318),
        "NASH": (0.7113, 0.7624, 0.7993, 0.7812, 0.7559),
        "BMSH": (None, 0.7954, 0.8286, 0.8226, 0.7941),
        "CorrSH": (0.7589, 0.8212, 0.8420, 0.8465, 0.8482),
    },
    "ng20": {
        "LSH": (0.0578, 0.0597, 0.0666, 0.0770, 0.0949),
        "StackedRBM": (0.0594, 0.0604, 0.0533, 0.0623, 0.0642),
        "SpectralHashing": (0.2545, 0.3200, 0.3709, 0.3196, 0.2716),
        "SelfTaughtHashing": (0.3664, 0.5237, 0.5860, 0.5806, 0.5443),
        "VDSH": (0.3643, 0.3904, 0.4327, 0.1731, 0.0522),
        "NASH": (0.3786, 0.5108, 0.5671, 0.5071, 0.4664),
        "BMSH": (None, 0.5812, 0.6100, 0.6008, 0.5802),
        "CorrSH": (0.4389, 0.5839, 0.6183, 0.6279, 0.6359),
    },
}

# Reuters, 64 bits: rank v with k = 10 components, and k with v = 10.
RANK = {0: 0.7812, 1: 0.8353, 5: 0.8406, 10: 0.8465}
COMPONENTS = {1: 0.8300, 3: 0.8391, 5: 0.8395, 10: 0.8465}

# Seconds per epoch on TMC, one GPU, by (v, k); NASH has neither.
NASH_SECONDS = 2.553
SECONDS = {
    (1, 1): 2.934,
    (1, 5): 3.124,
    (5, 1): 3.137,
    (5, 5): 3.353,
    (10, 5): 3.403,
    (10, 10): 3.768,
}

# The appendix: RBSH's preprocessing.
APPENDIX: dict[str, dict[str, tuple[float, ...]]] = {
    "ng20-rbsh": {
        "RBSH": (0.5190, 0.6087, 0.6385, 0.6655, 0.6668),
        "CorrSH": (0.5393, 0.6275, 0.6647, 0.6941, 0.7005),
    },
    "tmc-rbsh": {
        "RBSH": (0.7620, 0.7959, 0.8138, 0.8224, 0.8193),
        "CorrSH": (0.7667, 0.7975, 0.8203, 0.8289, 0.8324),
    },
}
