"""Pickles from anywhere, read without letting them run code.

A pickle is a program that may import and call anything. Data files need containers, numbers and numpy arrays: the few
names by which those are built are looked up, every other name is refused before it is.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

_ALLOWED = {
    # What a pickled numpy array needs, under the names of numpy 1 and 2; _codecs.encode carries bytes in protocol 2.
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class RestrictedUnpickler(pickle.Unpickler):
    """Builds containers, bytes, numbers and numpy arrays; every other name is refused before it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        """The class behind a name in the pickle, if it is one of the few that arrays need."""
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a data file")
        return super().find_class(module.replace("numpy.core", "numpy._core") if _numpy_2() else module, name)


def load_restricted(content: bytes) -> Any:
    """Unpickle data that may come from anywhere; texts of Python 2 become bytes.

    Raises:
        pickle.UnpicklingError: it names anything but containers and arrays.
    """
    return RestrictedUnpickler(io.BytesIO(content), encoding="bytes").load()


def _numpy_2() -> bool:
    return int(np.__version__.partition(".")[0]) >= 2
