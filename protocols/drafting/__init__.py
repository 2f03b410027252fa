"""From a draft to a document: what a server does once, and a device never."""

from protocols.drafting.choice import make_continuous, make_discrete, make_sign
from protocols.drafting.compiling import compile_document
from protocols.drafting.questions import compile_questions

__all__ = ["compile_document", "compile_questions", "make_continuous", "make_discrete", "make_sign"]
