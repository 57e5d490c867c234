"""How many different values there are, from a few thousand bytes: HyperLogLog as Apache DataSketches stores it.

A sketch of few values holds their coupons (see `windrow.kernels.sketches`), one of many the greatest number of a coupon
in each of 2 ** lg_k registers. A sketch that met its values one after the other has a historic estimate, which errs
least (0.83 over the root of the registers); one that was united from several has registers alone (1.04 over that root).

All modes and packings of the format are read. Registers are written with eight bits each: every library reads them,
Spark's `hll_sketch_agg` writes the same, and what is stored is compressed, which leaves nothing to gain by packing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged
from windrow.kernels.sketches import gather_coupons, raise_registers

__all__ = ["LG_K", "Coupons", "Sketch", "united"]

Coupons = npt.NDArray[np.uint32]
Registers = npt.NDArray[np.uint8]

LG_K = 12
"""Registers of our own sketches, as a power of two: the standard error is 1.3 %, united 1.6 %. It is the default of
Spark's `hll_sketch_agg`, so that `hll_union` takes sketches of both without being told to."""

_KEY_BITS = 26
_LIST, _SET, _HLL = range(3)
_PREAMBLE = {_LIST: 2, _SET: 3, _HLL: 10}
_VERSION, _FAMILY = 1, 7
_EMPTY, _COMPACT, _OUT_OF_ORDER = 4, 8, 16
_HEAD = struct.Struct("<8B")
_SUMS = struct.Struct("<3d2I")
_LIST_COUNT, _SMALLEST_SET = 7, 5
_HLL_4, _HLL_6, _HLL_8 = range(3)
_ELSEWHERE = 15
"""A register of four bits that stands among the exceptions."""
_COUPON_ERROR = 0.409 / 2**13
_CROSSOVER = {4: 0.718, 5: 0.672}
"""Below this many values per register the number of registers at zero tells more than their sum; 0.64 for others."""


class Sketch:
    """The distinct values of one column, as far as it met them."""

    __slots__ = ("_count", "_coupons", "_registers", "historic", "inverse", "lg_k")

    def __init__(self, lg_k: int = LG_K) -> None:
        self.lg_k = lg_k
        self._count = 0
        self._coupons: Coupons | None = np.zeros(4 << _bits_of(_most_coupons(lg_k)), np.uint32)
        self._registers: Registers | None = None
        self.historic: float | None = 0.0
        """The historic estimate of registers; None where several sketches were united."""
        self.inverse = float(1 << lg_k)
        """The sum of 2 ** -register."""

    @property
    def coupons(self) -> Coupons | None:
        """The coupons, by their keys; None where there are registers.

        A historic estimate holds for values in an order that their hashes do not depend on, and keys do not tell of the
        other half of a hash.
        """
        if self._coupons is None:
            return None
        turned = np.sort(_turned(self._coupons[self._coupons != 0], 32 - _KEY_BITS))
        return _turned(turned, _KEY_BITS)

    @property
    def registers(self) -> Registers | None:
        """The registers; None where there are coupons."""
        return self._registers

    def add(self, coupons: Coupons) -> None:
        """Add the coupons of values."""
        start = 0
        if self._coupons is not None:
            most = _most_coupons(self.lg_k)
            start, self._count = gather_coupons(coupons, 0, self._coupons, self._count, most)
            if start == coupons.size:
                return
            self._promote(coupons[start])
        registers, historic = self._of_registers, self.historic
        hip, self.inverse = raise_registers(coupons, start, registers, historic or 0.0, self.inverse)
        self.historic = None if historic is None else hip

    def merge(self, other: Sketch) -> None:
        """Add the values of another sketch; of two that have registers the fewer remain.

        A sketch that raises no register of the other leaves it its historic estimate, as its values would.
        """
        if other.coupons is not None:
            self.add(other.coupons)
            return
        own, theirs = self.coupons, other.folded(self.lg_k)
        self._fold(theirs.lg_k)
        if own is not None:
            self._take(theirs)
            self.add(own)
            return
        mine, registers = self._of_registers, theirs._of_registers  # noqa: SLF001
        if (mine <= registers).all() and (mine < registers).any():
            self._take(theirs)
        elif (mine < registers).any():
            np.maximum(mine, registers, out=mine)
            self._summed()

    def folded(self, lg_k: int) -> Sketch:
        """A copy with no more registers than 2 ** lg_k."""
        copy = Sketch(self.lg_k)
        copy._take(self)
        copy._fold(min(lg_k, self.lg_k))
        return copy

    @property
    def estimate(self) -> float:
        """How many different values there are."""
        if self._coupons is not None:
            return _of_coupons(self._count)
        if self.historic is not None:
            return self.historic
        return _composite(self.lg_k, self.inverse, int(np.count_nonzero(self._of_registers == 0)))

    @property
    def error(self) -> float:
        """The relative standard error of the estimate."""
        if self._coupons is not None:
            return _COUPON_ERROR
        return (1.04 if self.historic is None else 0.8326) / math.sqrt(1 << self.lg_k)

    @property
    def is_exact(self) -> bool:
        """Whether the estimate, rounded, is all but certain: so few values, each with its own coupon."""
        return self._coupons is not None

    def to_bytes(self) -> bytes:
        """The sketch as DataSketches stores it, compact."""
        coupons = self.coupons
        if coupons is not None:
            return _stored_coupons(self.lg_k, coupons)
        registers = self._of_registers
        least = int(registers.min())
        flags = _COMPACT | (_OUT_OF_ORDER if self.historic is None else 0)
        head = _HEAD.pack(10, _VERSION, _FAMILY, self.lg_k, 0, flags, least, _HLL | _HLL_8 << 2)
        low, high = _inverse_sums(registers)
        at_least = int(np.count_nonzero(registers == least))
        return head + _SUMS.pack(self.historic or 0.0, low, high, at_least, 0) + registers.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "sketch") -> Sketch:
        """Read a sketch of any DataSketches library; `Damaged` where it is none."""
        try:
            return _read(data)
        except (struct.error, ValueError, IndexError) as error:
            raise Damaged(f"{name}: this is no HyperLogLog sketch: {error}") from error

    @property
    def _of_registers(self) -> Registers:
        assert self._registers is not None  # noqa: S101 (callers looked at the coupons)
        return self._registers

    def _promote(self, last: np.uint32) -> None:
        """Coupons become registers; with the last one there are too many."""
        coupons = self.coupons
        assert coupons is not None  # noqa: S101
        self._coupons, self._registers = None, np.zeros(1 << self.lg_k, np.uint8)
        with_last = np.append(coupons, last)
        _, self.inverse = raise_registers(with_last, 0, self._registers, 0.0, self.inverse)
        self.historic = _of_coupons(with_last.size)

    def _fold(self, lg_k: int) -> None:
        """Go on with fewer registers."""
        if lg_k == self.lg_k:
            return
        coupons, registers = self.coupons, self._registers
        self.__init__(lg_k)  # type: ignore[misc]
        if registers is not None:
            self._coupons, self._registers = None, registers.reshape(-1, 1 << lg_k).max(axis=0)
            self._summed()
        elif coupons is not None:
            self.add(coupons)

    def _take(self, other: Sketch) -> None:
        """Become a copy."""
        self._coupons = None if other._coupons is None else other._coupons.copy()
        self._registers = None if other._registers is None else other._registers.copy()
        self.lg_k, self._count, self.historic, self.inverse = other.lg_k, other._count, other.historic, other.inverse

    def _summed(self) -> None:
        self.historic, self.inverse = None, sum(_inverse_sums(self._of_registers))

    @classmethod
    def _with_registers(cls, registers: Registers, historic: float | None) -> Sketch:
        sketch = cls(_bits_of(registers.size))
        sketch._coupons, sketch._registers = None, registers
        sketch._summed()
        sketch.historic = historic
        return sketch


def united(sketches: Iterable[Sketch], lg_k: int = LG_K) -> Sketch:
    """The values of all sketches in one, which has no more registers than any of those that have some."""
    union = Sketch(lg_k)
    for sketch in sketches:
        union.merge(sketch)
    return union


def _bits_of(size: int) -> int:
    """The power of two that a size is, or is above."""
    return size.bit_length() - 1


def _most_coupons(lg_k: int) -> int:
    return _LIST_COUNT if lg_k < 8 else 3 << (lg_k - 5)


def _turned(coupons: Coupons, bits: int) -> Coupons:
    """Coupons, rotated to the left."""
    return coupons << np.uint32(bits) | coupons >> np.uint32(32 - bits)


def _inverse_sums(registers: Registers) -> tuple[float, float]:
    """The sum of 2 ** -register over registers below 32, and over all others: each is exact."""
    counts = np.bincount(registers, minlength=64)
    parts = counts * 0.5 ** np.arange(counts.size)
    return float(parts[:32].sum()), float(parts[32:].sum())


# ---- estimates


def _of_coupons(count: int) -> float:
    """How many values left so many coupons; one pair of values in three times 2 ** 26 shares a coupon."""
    return count + count * count / (6.0 * (1 << _KEY_BITS))


def _composite(lg_k: int, inverse: float, zeros: int) -> float:
    """The estimate from registers alone: from their sum, or, where few values came, from those that are still zero."""
    size = 1 << lg_k
    by_sum = _values_per_register(inverse / size) * size / (1 + 1.079 / size)
    if by_sum > 3 * size:
        return by_sum
    by_zeros = size * math.log(size / 0.5) if not zeros else size * math.log(size / zeros)
    return by_sum if (by_sum + by_zeros) / 2 > _CROSSOVER.get(lg_k, 0.64) * size else by_zeros


def _values_per_register(mean: float) -> float:
    """How many values per register make the mean of 2 ** -register what it is, by Newton's method on its logarithm."""
    if mean >= 1:
        return 0.0
    powers = 0.5 ** np.arange(64)
    load = max(0.7213 / mean - 1, 1e-9) if mean < 0.4 else (1 - mean) * 1.5
    for _ in range(64):
        # P(register <= v) = exp(-load / 2 ** v), so the mean is the sum over v of half of that over 2 ** v
        below = np.exp(-load * powers) * powers / 2
        value, slope = float(below.sum()), -float((below * powers).sum())
        step = value * math.log(value / mean) / slope
        load = float(max(load - step, load / 8))
        if abs(step) < 1e-12 * load:
            break
    return load


# ---- bytes


def _stored_coupons(lg_k: int, coupons: Coupons) -> bytes:
    count = coupons.size
    body = coupons.astype("<u4").tobytes()
    if count <= _LIST_COUNT:
        flags = _COMPACT | (0 if count else _EMPTY)
        return _HEAD.pack(2, _VERSION, _FAMILY, lg_k, 3, flags, count, _LIST | _HLL_8 << 2) + body
    bits = max(_SMALLEST_SET, _bits_of((4 * count + 2) // 3 - 1) + 1)
    head = _HEAD.pack(3, _VERSION, _FAMILY, lg_k, bits, _COMPACT, 0, _SET | _HLL_8 << 2)
    return head + struct.pack("<I", count) + body


def _read(data: bytes) -> Sketch:
    words, version, family, lg_k, bits, flags, byte_6, modes = _HEAD.unpack_from(data)
    mode, packing = modes & 3, modes >> 2 & 3
    if (version, family) != (_VERSION, _FAMILY) or _PREAMBLE.get(mode) != words or packing > _HLL_8:
        raise ValueError(f"it begins with {data[:8].hex()}")
    if not 4 <= lg_k <= 21:
        raise ValueError(f"2 ** {lg_k} registers; between 2 ** 4 and 2 ** 21 are possible")
    if mode == _HLL:
        return _read_registers(data, lg_k, packing, bits, flags)
    start = 8 if mode == _LIST else 12
    count = byte_6 if mode == _LIST else struct.unpack_from("<I", data, 8)[0]
    places = count if flags & _COMPACT else 1 << bits
    coupons = np.frombuffer(data, "<u4", 0 if flags & _EMPTY else places, start)
    coupons = coupons[coupons != 0].astype(np.uint32)
    if coupons.size != count or np.unique(coupons).size != count or not (coupons >> np.uint32(_KEY_BITS)).all():
        raise ValueError(f"it should hold {count} different values, and does not")
    sketch = Sketch(lg_k)
    sketch.add(coupons)
    return sketch


def _read_registers(data: bytes, lg_k: int, packing: int, bits: int, flags: int) -> Sketch:
    historic, _, _, _, exceptions = _SUMS.unpack_from(data, 8)
    start, size = 8 + _SUMS.size, 1 << lg_k
    if packing == _HLL_8:
        registers = np.frombuffer(data, np.uint8, size, start).copy()
    elif packing == _HLL_6:
        registers = _six_bits(np.frombuffer(data, np.uint8, size * 3 // 4 + 1, start), size)
    else:
        packed = np.frombuffer(data, np.uint8, size // 2, start)
        places = exceptions if flags & _COMPACT or not exceptions else 1 << bits
        aux = np.frombuffer(data, "<u4", places, start + packed.size)
        registers = _four_bits(packed, aux[aux != 0], data[6])
    if registers.max() > 63:
        raise ValueError(f"a register holds {registers.max()}")
    if not flags & _OUT_OF_ORDER and not historic >= 0:
        raise ValueError(f"its estimate is {historic}")
    return Sketch._with_registers(registers, None if flags & _OUT_OF_ORDER else historic)  # noqa: SLF001


def _six_bits(packed: Registers, size: int) -> Registers:
    bits = np.unpackbits(packed, bitorder="little", count=6 * size).reshape(size, 6)
    return np.packbits(bits, axis=1, bitorder="little").ravel()


def _four_bits(packed: Registers, exceptions: Coupons, least: int) -> Registers:
    registers = np.stack([packed & 15, packed >> 4], axis=1).ravel()
    elsewhere = registers == _ELSEWHERE
    registers = registers + np.uint8(least)
    slots = exceptions & np.uint32(registers.size - 1)
    if np.count_nonzero(elsewhere) != exceptions.size or not elsewhere[slots].all():
        raise ValueError(f"{np.count_nonzero(elsewhere)} registers are exceptions, and {exceptions.size} stand there")
    registers[slots] = exceptions >> np.uint32(_KEY_BITS)
    return registers
