"""A Darknet network as a torch module with YOLOv8's output layout.

In: sections of a `.cfg`, floats of a `.weights`. Out: a module
`images: float32 [batch, 3, height, width], RGB, 0 to 1` -> `output0: float32 [batch, 4 + classes, anchors]`,
cx cy w h in pixels of the input, then one score per class (objectness times class probability).
Every float of the weights file must be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weights.errors import ExportError
from weights.yolo.darknet_cfg import Section

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "linear": nn.Identity,
    "leaky": lambda: nn.LeakyReLU(0.1),
    "relu": nn.ReLU,
    "mish": nn.Mish,
    "swish": nn.SiLU,
    "logistic": nn.Sigmoid,
}


class Floats:
    """The floats of a `.weights` file after its header, taken from the front."""

    def __init__(self, content: bytes) -> None:
        if len(content) < 12:
            raise ExportError(f"weights: {len(content)} bytes. A Darknet .weights file begins with 16 or 20 of header.")
        major, minor = np.frombuffer(content, "<i4", 2)
        # "Images seen" grew from 32 to 64 bits with version 0.2.
        header = 20 if major * 10 + minor >= 2 else 16
        if (len(content) - header) % 4:
            raise ExportError("weights: its length is no whole number of floats. It is cut off, or no .weights file.")
        self._values = np.frombuffer(content, "<f4", offset=header)
        self._taken = 0

    def take(self, *shape: int) -> Tensor:
        """The next floats, in this shape."""
        count = int(np.prod(shape))
        values = self._values[self._taken : self._taken + count]
        if len(values) < count:
            raise ExportError(
                f"weights: it ends after {len(self._values)} floats, the .cfg asks for more. They must belong together."
            )
        self._taken += count
        return torch.from_numpy(values.reshape(shape).copy())

    def check_all_taken(self) -> None:
        """Raise when floats are left over."""
        if self._taken != len(self._values):
            raise ExportError(
                f"weights: {len(self._values)} floats, the .cfg asks for {self._taken}. They do not belong together."
            )


class MaxPool(nn.Module):
    """Darknet's max-pool: it pads right and bottom first, so size 2 with stride 1 keeps the size."""

    def __init__(self, section: Section, height: int, width: int) -> None:
        super().__init__()
        self.stride = section.integer("stride", 1)
        self.size = section.integer("size", self.stride)
        padding = section.integer("padding", self.size - 1)
        self.before, self.after = padding // 2, padding - padding // 2
        if self.size == self.stride and height % self.stride == 0 and width % self.stride == 0:
            self.before = self.after = 0  # the pad would never be looked at

    def forward(self, x: Tensor) -> Tensor:
        if self.after:
            x = F.pad(x, (self.before, self.after, self.before, self.after), value=-1e30)
        return F.max_pool2d(x, self.size, self.stride)


class Upsample(nn.Module):
    """Nearest neighbour, by a whole factor."""

    def __init__(self, section: Section) -> None:
        super().__init__()
        self.stride = section.integer("stride", 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=float(self.stride), mode="nearest")


class YoloHead(nn.Module):
    """One `[yolo]` section: the grid's numbers as boxes in input pixels and scores."""

    def __init__(self, section: Section, height: int, width: int, stride: int) -> None:
        super().__init__()
        pairs = np.array(section.reals("anchors"), "f4").reshape(-1, 2)
        anchors = torch.from_numpy(pairs[list(section.integers("mask")) or slice(None)])
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        self.cells: Tensor
        self.anchors: Tensor
        self.register_buffer("cells", torch.stack((columns, rows)).float()[None, None])  # [1, 1, 2, h, w]
        self.register_buffer("anchors", anchors[None, :, :, None, None])  # [1, anchors, 2, 1, 1]
        self.count = len(anchors)
        self.classes = section.integer("classes", 20)
        self.stride = stride
        self.scale = section.real("scale_x_y", 1.0)
        self.height, self.width = height, width

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape(-1, self.count, 5 + self.classes, self.height, self.width)
        centre = x[:, :, 0:2].sigmoid() * self.scale - (self.scale - 1) / 2
        boxes = torch.cat(((centre + self.cells) * self.stride, x[:, :, 2:4].exp() * self.anchors), dim=2)
        scores = x[:, :, 4:5].sigmoid() * x[:, :, 5:].sigmoid()
        rows = torch.cat((boxes, scores), dim=2)  # [batch, anchors, 4 + classes, h, w]
        return rows.transpose(1, 2).reshape(-1, 4 + self.classes, self.count * self.height * self.width)


class DarknetNetwork(nn.Module):
    """The sections run one after the other, routes and shortcuts looking back."""

    def __init__(self, sections: Sequence[Section], floats: Floats) -> None:
        super().__init__()
        net, self.sections = sections[0], tuple(sections[1:])
        self.height, self.width = net.integer("height", 416), net.integer("width", 416)
        self.layers = nn.ModuleList()
        # What each section gives: channels, rows, columns. Known while building, so the graph has fixed sizes.
        self.shapes: list[tuple[int, int, int]] = []
        incoming = (net.integer("channels", 3), self.height, self.width)
        for section in self.sections:
            layer, incoming = self._build(section, incoming, floats)
            self.layers.append(layer)
            self.shapes.append(incoming)
        self.classes = self._common_classes()
        self.anchors = sum(head.count * head.height * head.width for head in self._heads())
        floats.check_all_taken()

    def forward(self, images: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        heads: list[Tensor] = []
        x = images
        for index, (section, layer) in enumerate(zip(self.sections, self.layers, strict=True)):
            if section.kind == "route":
                x = self._route(section, index, outputs)
            elif section.kind == "shortcut":
                x = layer(x + outputs[self._back(section, index, section.integer("from", -3))])
            else:
                x = layer(x)
            outputs.append(x)
            if section.kind == "yolo":
                heads.append(x)
        return torch.cat(heads, dim=2)

    def _build(
        self, section: Section, incoming: tuple[int, int, int], floats: Floats
    ) -> tuple[nn.Module, tuple[int, int, int]]:
        channels, height, width = incoming
        match section.kind:
            case "convolutional":
                layer = _convolution(section, channels, floats)
                stride = section.integer("stride", 1)
                return layer, (section.integer("filters", 1), -(-height // stride), -(-width // stride))
            case "maxpool":
                pool = MaxPool(section, height, width)
                total = pool.before + pool.after - pool.size
                return pool, (channels, (height + total) // pool.stride + 1, (width + total) // pool.stride + 1)
            case "upsample":
                up = Upsample(section)
                return up, (channels, height * up.stride, width * up.stride)
            case "route":
                return nn.Identity(), self._route_shape(section)
            case "shortcut":
                return _activation(section), incoming
            case "yolo":
                return self._head(section, incoming), incoming
        raise section.error(
            "this kind of layer is not known; convolutional, maxpool, upsample, route, shortcut and yolo are. "
            "Export the checkpoint to ONNX with its own tools and give the ONNX file"
        )

    def _head(self, section: Section, incoming: tuple[int, int, int]) -> YoloHead:
        channels, height, width = incoming
        if section.integer("new_coords", 0):
            raise section.error("new_coords=1 is not known. Export the checkpoint to ONNX and give the ONNX file")
        head = YoloHead(section, height, width, self.height // height)
        if channels != head.count * (5 + head.classes):
            raise section.error(f"{channels} channels come in; {head.count} anchors of 5 + {head.classes} are expected")
        return head

    def _heads(self) -> list[YoloHead]:
        return [layer for layer in self.layers if isinstance(layer, YoloHead)]

    def _common_classes(self) -> int:
        classes = {head.classes for head in self._heads()}
        if len(classes) != 1:
            raise ExportError(f"cfg: class counts {sorted(classes)} in its [yolo] sections. Exactly one is expected.")
        return classes.pop()

    def _back(self, section: Section, index: int, reference: int) -> int:
        """The absolute index that a route's or shortcut's number means."""
        target = index + reference if reference < 0 else reference
        if not 0 <= target < index:
            raise section.error(f"layer {reference} is referred to; only earlier layers can be")
        return target

    def _route_shape(self, section: Section) -> tuple[int, int, int]:
        sources = [self.shapes[self._back(section, len(self.shapes), r)] for r in section.integers("layers")]
        if not sources or len({shape[1:] for shape in sources}) != 1:
            raise section.error("its layers must exist and have one size")
        channels = sum(shape[0] for shape in sources) // section.integer("groups", 1)
        return channels, *sources[0][1:]

    def _route(self, section: Section, index: int, outputs: list[Tensor]) -> Tensor:
        sources = [outputs[self._back(section, index, r)] for r in section.integers("layers")]
        joined = sources[0] if len(sources) == 1 else torch.cat(sources, dim=1)
        groups, group = section.integer("groups", 1), section.integer("group_id", 0)
        return joined if groups == 1 else joined.chunk(groups, dim=1)[group]


def _activation(section: Section) -> nn.Module:
    name = section.options.get("activation", "linear")
    if name not in ACTIVATIONS:
        raise section.error(f"activation '{name}' is not known; {', '.join(ACTIVATIONS)} are")
    return ACTIVATIONS[name]()


def _convolution(section: Section, channels: int, floats: Floats) -> nn.Sequential:
    """A convolution with its batch normalisation folded in, as Darknet computes it."""
    filters, size = section.integer("filters", 1), section.integer("size", 1)
    groups = section.integer("groups", 1)
    padding = size // 2 if section.integer("pad", 0) else section.integer("padding", 0)
    if padding != size // 2:
        raise section.error(f"padding {padding} with size {size} is not known; pad=1 is")
    conv = nn.Conv2d(channels, filters, size, section.integer("stride", 1), padding, groups=groups)
    bias = floats.take(filters)
    scale = torch.ones(filters)
    if section.integer("batch_normalize", 0):
        gamma, mean, variance = floats.take(filters), floats.take(filters), floats.take(filters)
        scale = gamma / (variance.sqrt() + 1e-6)
        bias = bias - mean * scale
    kernel = floats.take(filters, channels // groups, size, size)
    conv.weight = nn.Parameter(kernel * scale[:, None, None, None])
    conv.bias = nn.Parameter(bias)
    return nn.Sequential(conv, _activation(section))
