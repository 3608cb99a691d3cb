"""tritonkit against what people would use instead: the same models, machine and load, in one run.

    scenarios.py   what is asked: cases with right answers, contenders, callers
    contenders.py  how each one is started (apps/ are the peers' own servers) and asked (calls.py)
    driver.py      the load: callers in a closed loop; a wrong answer is no answer
    results.py     rounds, added to results.json; medians
    page.py        docs/benchmarks.md, from results.json alone

work/ is what every peer serves: the same ONNX files with the same steps before and behind them.
"""
