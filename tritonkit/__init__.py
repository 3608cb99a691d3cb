"""tritonkit: describe an NVIDIA Triton pipeline in Python, check it, write its repository, serve it, call it."""
