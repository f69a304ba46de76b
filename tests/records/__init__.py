"""The declaration of the records held to its promises; `python -m tests.records` writes what is generated from it.

That is the field tables of docs/metric-log.md, and the fields of version 2 as they may never shrink.
"""
