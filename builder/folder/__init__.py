"""Repository folders that somebody wrote by hand, read for the rules: `builder.folder.reading.read_repository`."""
