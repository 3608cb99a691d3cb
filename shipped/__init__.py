"""Where what tritonkit brings beside its packages lies: at its places in a checkout, in this folder in a wheel."""

import os
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
IS_CHECKOUT = (ROOT / "pyproject.toml").is_file()
PLACE = ROOT if IS_CHECKOUT else HERE

# The served code of the shipped models: `<model>/1/`.
REPOSITORY = PLACE / "model_repository"
SAMPLES = PLACE / "samples"
RECORDING = SAMPLES / "sense_and_sensibility.flac"
PHOTO = SAMPLES / "coffee.jpg"
# The releases of images that belong together: NAME=value lines.
VERSIONS = PLACE / "docker" / "versions.env"


def cache() -> Path:
    """The absolute folder for weights, exports, environments and logs, which may not be there yet.

    $TRITONKIT_CACHE; otherwise a checkout's own `.cache`, and for an installed package the user's folder for caches.
    """
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tritonkit"
    return Path(os.environ.get("TRITONKIT_CACHE") or (ROOT / ".cache" if IS_CHECKOUT else user)).absolute()
