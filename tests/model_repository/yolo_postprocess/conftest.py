"""The served code of yolo_postprocess, importable as in its server process."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "model_repository" / "yolo_postprocess" / "1"))
