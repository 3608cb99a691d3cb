"""How tensors get from step to step: bytes, place, copies; and what the server's own log says about it."""

from builder.handover.edges import Edge, Totals, edges_of, totals
from builder.handover.sizes import Sizes

__all__ = ["Edge", "Sizes", "Totals", "edges_of", "totals"]
