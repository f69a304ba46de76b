"""How report.html looks."""

STYLE = """
:root { --ink: #22303c; --soft: #5b6b79; --line: #dfe5ea; --paper: #fff; --ground: #f4f6f8; --mark: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { margin: 0; font-size: 1.7rem; letter-spacing: -0.01em; }
h2 { margin: 0 0 0.4rem; font-size: 1.15rem; }
h3 { margin: 0 0 0.2rem; font-size: 1rem; }
.runs { margin: 0 0 1rem; color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 0.75rem; }
.card { flex: 1 1 18rem; background: var(--paper); border: 1px solid var(--line); border-left: 4px solid var(--mark);
  border-radius: 6px; padding: 0.7rem 1rem; }
.card ul { margin: 0; padding: 0; list-style: none; color: var(--soft); font-size: 0.88rem; }
section { margin-top: 1.1rem; padding: 1.1rem 1.25rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: 8px; }
aside { margin-top: 1.1rem; padding: 0.8rem 1.25rem; background: #fff7e8; border: 1px solid #f0d9a8;
  border-radius: 8px; font-size: 0.92rem; }
aside ul { margin: 0.2rem 0 0; padding-left: 1.2rem; }
.note { margin: 0 0 0.7rem; color: var(--soft); font-size: 0.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
th { text-align: left; vertical-align: bottom; font-weight: 600; color: var(--soft);
  border-bottom: 2px solid var(--line); }
th, td { padding: 0.32rem 0.55rem; }
th.g { text-align: center; border-bottom: 0; padding-bottom: 0; color: var(--ink); }
th.g:not(:empty) { border-bottom: 1px solid #9aa7b2; }
td { border-bottom: 1px solid var(--line); white-space: nowrap; max-width: 32rem; overflow: hidden;
  text-overflow: ellipsis; }
tr.first td { border-top: 2px solid #c9d3db; }
tbody tr:hover td { background: #f2f7fb; }
.n { text-align: right; }
[data-alarm] { color: #b3400a; font-weight: 600; }
figure { margin: 0.4rem 0 1.2rem; }
figcaption { font-weight: 600; margin-bottom: 0.2rem; }
figure img { width: 100%; height: auto; display: block; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.2rem; margin: 0; font-size: 0.92rem; }
dt { font-weight: 600; }
dd { margin: 0; color: var(--soft); }
footer { margin-top: 1.4rem; color: var(--soft); font-size: 0.85rem; }
@media print { body { background: #fff; } section, .card { break-inside: avoid; }
  main { padding: 0; max-width: none; } }
"""
