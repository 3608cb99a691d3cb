"""The shipped pipelines: one file and one function each, of one name."""
