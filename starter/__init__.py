"""Starts a Triton server's models one at a time, the language model last, and starts again what died.

The standard library only: this folder is copied into images as it is and run there by `python3 -m starter`.
"""
