"""A Kafka cluster that speaks real bytes, and lies, falters and falls silent when it is told to.

`codec` and `messages` are the protocol, written from its public description and not from the client under test;
`records` what partitions hold; `cluster` who leads what; `groups` the coordinator; `node` a broker's connections,
`answers` what it answers; `mischief` what it answers wrongly. See docs/design/0016-wire-histories.md.
"""
