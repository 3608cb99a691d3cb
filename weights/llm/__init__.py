"""Language models: the small Llama of our own (training, measuring, the checkpoint itself), and Gemma on request."""
