"""YOLO checkpoints of every kind, turned into one folder: `model.onnx`, `labels.txt`, `yolo.json`.

darknet_cfg.py         .cfg text -> sections
darknet_network.py     sections, .weights -> a torch module
darknet.py             export_darknet: that module in ONNX
environment.py         Ultralytics in an environment of its own
checkpoint.py          export_checkpoint: a .pt by Ultralytics' exporter; checkpoint_script.py runs in that environment
onnx_file.py           export_onnx_file: any ONNX file as it is; layouts.py tells how its output is laid out
description.py         what `yolo.json` says; the served code reads it
"""
