"""The docs site: pages of the reference made from the code, and links that lead to something.

`settings` from config/tidegate.yaml and the settings' classes · `metrics` from the calls that make them · `api` from
the document that the admin address serves · `commands` from the command line · `hooks` what mkdocs calls.
"""
