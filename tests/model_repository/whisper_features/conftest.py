import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "model_repository" / "whisper_features" / "1"))
