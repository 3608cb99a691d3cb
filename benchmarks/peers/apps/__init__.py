"""The peers' own servers, each written as its documentation recommends, batching on where it is offered.

Each is started as `python -m benchmarks.peers.apps.NAME PORT SERVICE` and answers POST /SERVICE on 127.0.0.1 with JSON.
"""
