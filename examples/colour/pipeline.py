"""Which colour a picture mostly has: a Python model and an ONNX file of your own, in one ensemble."""

from builder import Pipeline, Step, onnx, python

decode = python("decode", code="decode", input=["IMAGE UINT8 [-1]"], output=["PIXELS FP32 [3, 32, 32]"])
colour = onnx("colour", file="colour.onnx", max_batch_size=16, dynamic_batching={"max_queue_delay_microseconds": 2000})

PIPELINE = Pipeline(
    name="main_colour",
    inputs="IMAGE",
    outputs="SHARES",
    steps=[
        Step(model=decode, input_map="IMAGE", output_map="PIXELS=pixels"),
        Step(model=colour, input_map="pixels", output_map="shares=SHARES"),
    ],
)
