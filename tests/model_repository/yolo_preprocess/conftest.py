"""The served code of yolo_preprocess, importable as in its server process."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "model_repository" / "yolo_preprocess" / "1"))
