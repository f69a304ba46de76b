"""Every policy and rate law in every scenario, and one page that says which to choose: `make control`.

command ─► simulated (every scenario, in processes beside each other) ─► outcome ─► book (JSON) ─► page, pictures
       └─► real (ten minutes of them on real brokers, by `load.control`) ─┘
On the command line `python -m load.compare`.
"""
