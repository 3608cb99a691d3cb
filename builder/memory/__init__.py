"""GPU memory by arithmetic: what models, caches, pools and processes take, and the settings that follow."""
