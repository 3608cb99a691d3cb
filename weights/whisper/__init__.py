"""Whisper checkpoints of any size, turned into one folder that the served models read.

ctranslate2.py  model.bin (CTranslate2)         ┐
openai.py       .pt, or a name of openai-whisper ┴ checkpoint.py   Checkpoint: dimensions + named arrays
    ▼ onnx_graph.py                                ONNX nodes by function calls
    ▼ encoder.py  decoder.py                       encoder.onnx · cross.onnx, decoder.onnx
    ▼ description.py                               whisper.json, whisper.tiktoken
export.py                                          all of it: export_whisper(source, out)
"""
