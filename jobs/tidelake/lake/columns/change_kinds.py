"""Kinds of changes as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

OLD, DELETE, UPDATE, INSERT = -1, 0, 1, 2  # by the class of their place in a commit; OLD: old values of an update
Kinds = npt.NDArray[np.int8]
_KINDS = {"UPDATE_BEFORE": OLD, "DELETE": DELETE, "UPDATE_AFTER": UPDATE, "INSERT": INSERT}


def kinds_of(types: pa.Array) -> Kinds:
    """Return the kind of each change from `_change_type`, plain or dictionary-encoded."""
    coded = types if pa.types.is_dictionary(types.type) else pc.dictionary_encode(types)
    kinds = np.array([_KINDS[name] for name in coded.dictionary.to_pylist()], np.int8)
    of_rows: Kinds = kinds[np.asarray(coded.indices)]
    return of_rows
