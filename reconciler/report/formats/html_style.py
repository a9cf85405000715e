"""How a page looks: the reader's own fonts and sizes, and either colour scheme."""

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --page: #ffffff; --quiet: #59636e; --rule: #d1d9e0; --soft: #f6f8fa;
  --good: #116329; --warn: #7d4e00; --bad: #b3171f; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --quiet: #9198a1; --rule: #3d444d;
  --soft: #151b23; --good: #56d364; --warn: #e3b341; --bad: #ff8182; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: var(--text); background: var(--page);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2, h3, h4, h5, h6 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
p { margin: 0.5rem 0; } p > span + span { margin-left: 1.2em; }
span, em, strong, code, td, th, dd, dt, li, h1, h2, h3, summary { unicode-bidi: isolate; }
code, pre, .mark { font-family: ui-monospace, monospace; font-size: 0.9em; }
code { color: var(--quiet); }
pre { background: var(--soft); padding: 0.6rem 0.8rem; overflow-x: auto; overflow-wrap: normal; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: 0.25rem 0.8rem; border-bottom: 1px solid var(--rule); text-align: left; font-weight: normal;
  vertical-align: top; }
thead th, th[scope=rowgroup] { color: var(--quiet); font-size: 0.9em; } th[scope=rowgroup] { padding-top: 0.8rem; }
.right { text-align: right; white-space: nowrap; }
ul { padding-left: 1.2rem; } main > ul, section > ul { list-style: none; padding-left: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { color: var(--quiet); grid-column: 1; }
dd { margin: 0; grid-column: 2; }
em { font-style: normal; color: var(--quiet); margin-left: 1em; }
.mark { display: inline-block; min-width: 2em; }
.strong { font-weight: 600; } .dim, footer { color: var(--quiet); } .good { color: var(--good); }
.warn { color: var(--warn); } .bad { color: var(--bad); }
.note { border-left: 0.25rem solid var(--rule); background: var(--soft); padding: 0.4rem 0.8rem; }
.note.warning { border-color: var(--warn); } .note.error { border-color: var(--bad); }
figure { margin: 0.5rem 0; } figure svg { display: block; width: 100%; height: auto; color: var(--text); }
figcaption { color: var(--quiet); font-size: 0.9em; }
details { margin: 1rem 0; } summary { cursor: pointer; }
footer { margin-top: 2rem; font-size: 0.85em; }
"""
