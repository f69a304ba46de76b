"""Dead letters back to where they were meant to go: `tidegate redrive`. See docs/design/0046-redrive.md.

`command` arguments and wiring · `run` one pass over one queue · `choice` which letters go · `pace` how fast ·
`audit` what is recorded · `count` what became of all · `words` what is said.
"""
