"""What travels: a Request of Tensors to a server, Responses of arrays back. Plain values, no protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

MAX_REQUEST_BYTES = 2**31 - 1  # gRPC can't carry more in one message, whatever is configured


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """One input as it goes on the wire.

    Attributes:
        name: the model's name for it.
        datatype: as the wire spells it, such as FP32 or BYTES.
        array: the values with their full shape; for BYTES an object array of bytes.
        region: the shared memory region that holds the values already; "" sends them in the request.
    """

    name: str
    datatype: str
    array: np.ndarray
    region: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def byte_size(self) -> int:
        """Bytes on the wire; each element of BYTES carries its length in four more."""
        if self.datatype == "BYTES":
            return sum(len(item) + 4 for item in self.array.reshape(-1))
        return self.array.nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One call of a model with all its inputs.

    Attributes:
        id: what the server calls this request, each step of an ensemble included; "" leaves it without.
        lifeline: the model that is told when a streamed request ends early; "" if none has to be, see lifelines.py.
    """

    model: str
    tensors: tuple[Tensor, ...]
    id: str = ""
    lifeline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Response:
    """One answer, or one part of a streamed one; outputs by name, BYTES as object arrays of bytes."""

    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    is_final: bool = True
