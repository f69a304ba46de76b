"""The report's ledger of a run of real faults, held against what happened in it.

On the command line `python -m load.ledger_check`.
"""
