"""The differential test: random repositories, our verdict against the real server's. Run from a checkout."""
