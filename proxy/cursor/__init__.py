"""`tidegate skip` and `tidegate rewind`: a group's cursors moved by a person (docs/design/0045-moving-the-cursor.md).

`choice` settles offsets, `carrying` has the moves made and sees to it that they are, `command` is what a person runs.
"""
