"""The style sheet that every page carries inside itself."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #52606d; --line: #d9dfe5;
  --paper: #ffffff; --back: #f4f6f8; --accent: #0072b2; --good: #00795a; --bad: #c04a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --quiet: #a3b0bd; --line: #36424e;
  --paper: #1a2129; --back: #11161b; --accent: #6cb8e6; --good: #4cc9a1; --bad: #ff9a5c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--back); color: var(--ink); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.5rem 3rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .6rem; overflow-wrap: anywhere; }
p { margin: 0 0 .9rem; max-width: 44rem; text-wrap: pretty; overflow-wrap: anywhere; }
.lead { font-size: 1.125rem; color: var(--quiet); }
a { color: var(--accent); }
nav ol { columns: 16rem; column-gap: 2rem; margin: 0; padding-left: 1.3rem; color: var(--quiet); }
nav { margin: 0 0 1.6rem; font-size: .95rem; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr));
  gap: .8rem; margin: 1.4rem 0 1.6rem; }
dl.facts > div { display: flex; flex-direction: column; background: var(--paper);
  border: 1px solid var(--line); border-top: 3px solid var(--accent); border-radius: .5rem;
  padding: .7rem .95rem .8rem; }
dl.facts > .good { border-top-color: var(--good); }
dl.facts > .bad { border-top-color: var(--bad); }
dl.facts dt { color: var(--quiet); font-size: .85rem; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
dl.facts .value { font-size: 1.45rem; font-weight: 650; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
dl.facts .good .value { color: var(--good); }
dl.facts .bad .value { color: var(--bad); }
dl.facts .note { color: var(--quiet); font-size: .85rem; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.4rem 1.5rem 1.2rem; margin: 0 0 1.4rem; }
figure { margin: .4rem 0 .4rem; }
.wide { overflow-x: auto; margin: 0 0 .6rem; }
.wide:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
figure .wide { background: #ffffff; border-radius: .4rem; text-align: center; }
figure svg { display: block; margin: 0 auto; max-width: 100%; height: auto; }
figcaption, caption { color: var(--quiet); font-size: .92rem; text-align: left; }
figcaption { max-width: 44rem; }
caption { padding: 0 0 .4rem; }
table { border-collapse: collapse; min-width: 50%; font-size: .95rem; }
th, td { padding: .4rem .9rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: baseline; }
th { font-weight: 600; border-bottom: 2px solid var(--line); }
th:first-child, td:first-child { padding-left: .2rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tbody tr:hover { background: color-mix(in srgb, var(--accent) 8%, transparent); }
footer { color: var(--quiet); font-size: .85rem; }
@media (prefers-color-scheme: dark) { figure .wide { padding: .3rem; background: #fbfbfa; } }
.scroll { display: none; color: var(--quiet); font-size: .8rem; margin: 0 0 .3rem; }
@media screen and (max-width: 46rem) { main { padding: 1.4rem .8rem 2rem; }
  h1 { font-size: 1.55rem; }
  section { padding: 1rem .9rem .8rem; } dl.facts { grid-template-columns: 1fr 1fr; gap: .6rem; }
  figure svg { max-width: 44rem; } figure .wide { text-align: left; }
  .scroll { display: block; } }
@media print { :root { --ink: #000; --quiet: #444; --line: #bbb; --paper: #fff; --back: #fff; }
  main { max-width: none; padding: 0; } section { border: 0; padding: 0; }
  figure, table, dl.facts { break-inside: avoid; } h2 { break-after: avoid; } nav { display: none; }
  .wide { overflow: visible; } figure svg { max-width: 100%; } }
""".strip()
