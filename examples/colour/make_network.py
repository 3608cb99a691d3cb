"""Writes colour.onnx: pixels float32 [batch, 3, 32, 32] -> shares float32 [batch, 3] of red, green, blue; sum 1."""

from pathlib import Path

from onnx import TensorProto, checker, helper, save_model

nodes = [
    helper.make_node("GlobalAveragePool", ["pixels"], ["means"]),
    helper.make_node("Flatten", ["means"], ["flat"]),
    helper.make_node("Mul", ["flat", "scale"], ["scaled"]),
    helper.make_node("Softmax", ["scaled"], ["shares"], axis=1),
]
graph = helper.make_graph(
    nodes,
    "colour",
    [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, 32, 32])],
    [helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["batch", 3])],
    [helper.make_tensor("scale", TensorProto.FLOAT, [1], [10.0])],
)
model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
checker.check_model(model, full_check=True)
save_model(model, Path(__file__).with_name("colour.onnx"))
