"""YOLO checkpoints of every kind, turned into one folder: `model.onnx`, `labels.txt`, `yolo.json`.

    darknet_cfg.py      .cfg text -> sections                      ┐
    darknet_network.py  sections + .weights -> a torch module      ├ darknet.py      export_darknet
    onnx_file.py        an ONNX file -> what it takes and gives    ┼ onnx_file.py    export_onnx_file
    environment.py      Ultralytics in an environment of its own   ┼ checkpoint.py   export_checkpoint (.pt)
    checkpoint_script.py runs inside that environment              ┘
    description.py      what `yolo.json` says; the served code reads it
"""
