"""Decimals as Parquet writes them in bytes, and as Arrow holds them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["decimals_of_bytes"]


def decimals_of_bytes(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    """Numbers of 16 bytes from such of fewer, one a row, with the high byte first."""
    numbers = np.zeros((len(raw), 16), np.uint8)
    numbers[:, : raw.shape[1]] = raw[:, ::-1]
    numbers[:, raw.shape[1] :] = np.where(raw[:, :1] >= 128, 255, 0)
    return numbers.view("V16").reshape(-1)
