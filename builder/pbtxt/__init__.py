"""`config.pbtxt` read tolerantly: `read(text)` gives a `Document` and never raises."""

from builder.pbtxt.reader import MAX_BYTES, read
from builder.pbtxt.values import Document, Message, Mistyped, Problem, ProblemKind, offset_of

__all__ = ["MAX_BYTES", "Document", "Message", "Mistyped", "Problem", "ProblemKind", "offset_of", "read"]
