"""Owns a container as a replica does, says where it is, and lives until it is killed.

Usage: owner.py ORDERS_JSON
"""

import json
import sys
import time

from deploy.ray.orders import orders_of
from deploy.ray.server import server_of

with server_of(orders_of(json.loads(sys.argv[1])), ["0", "1"]) as server:
    print(server.grpc, flush=True)
    time.sleep(600)
