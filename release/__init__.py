"""Replaces one model of a running server by another version of it: beside it first, compared, switched, taken back.

folders.py    what lies in the repository; every change is one rename, so it is whole at every instant
lock.py       the hash of every file of every version
server.py     loading and unloading, by the management API
compare.py    the same recorded inputs to both
steps.py      the steps that a person takes
"""
