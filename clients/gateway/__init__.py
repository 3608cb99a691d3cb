"""An HTTP service in front of a server: the API that OpenAI's clients speak, and a page for people.

guard.py      who may ask, how much at once, how long; a caller that goes away is noticed here
app.py        the routes
chat.py, completions.py, audio.py, detections.py      one endpoint each: its body in, its answer out
upstream.py   the calls of the Triton server
"""
