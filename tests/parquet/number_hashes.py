"""Hashes of numbers in bloom filters."""

from __future__ import annotations

import numpy as np

from windrow.parquet.bloom import hash_binary


def hash_numbers(values: np.ndarray) -> np.ndarray:
    """Hashes of 64-bit numbers as Parquet stores them; zero has one hash, whatever its sign."""
    stored = np.where(values == 0, 0, values).astype(values.dtype.newbyteorder("<"))
    return hash_binary(stored.tobytes(), np.arange(0, stored.size * 8 + 1, 8, dtype=np.int64))
