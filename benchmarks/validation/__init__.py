"""The validation matrix: what is modelled, what it was compared with, and how far off it is.

``python -m benchmarks.validation`` makes it from the code; nobody edits it by hand, and rows that miss stay in.
"""
