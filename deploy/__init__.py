"""What a pipeline needs to run on Kubernetes, on Ray, and to be watched: generated from its plan."""
