"""The report's own style, over that of the other pages: colours that colour-blind people tell apart, day and night."""

from __future__ import annotations

from lols.reproduction.report_charts import KINDS

__all__ = ["STYLE"]

BASE = """
:root { --k0: #0b62a8; --k1: #c2570c; --k2: #00755a; --k3: #8b3f92; --k4: #5d666e; --k5: #8a6d00;
  --heat: 22 104 178; --heat-most: 0.62; --yes: #0b62a8; --no: #b3470a; }
@media (prefers-color-scheme: dark) { :root { --k0: #6ab0f3; --k1: #f29a52; --k2: #41c99d; --k3: #d795dc; --k4: #a5afb8;
  --k5: #dcc04d; --heat: 70 140 225; --heat-most: 0.58; --yes: #7db8f5; --no: #f5a262; } }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { overflow-wrap: anywhere; }
h1 { font-size: 26px; line-height: 1.25; }
h2 { font-size: 21px; margin: 44px 0 10px; } h3 { font-size: 15px; margin: 18px 0 4px; }
a { color: var(--path); text-underline-offset: 2px; }
p { margin: 4px 0; max-width: 78ch; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 12px 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; grid-column: 2; }
figure { margin: 16px 0; padding: 16px; overflow: visible; }
figcaption { font-weight: 600; margin-bottom: 10px; }
.note { font-size: 13px; margin-top: 8px; }
.command { display: block; margin-top: 12px; padding: 6px 10px; background: var(--chip); border-radius: 6px;
  font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-x: auto; width: fit-content;
  max-width: 100%; overflow-wrap: anywhere; }
.command::before { content: "$ "; color: var(--soft); user-select: none; }
ul.contents { margin: 16px 0; font-size: 14px; } ul.contents li { margin: 0; }
ul.summary { display: block; font-size: 14.5px; color: var(--text); margin: 4px 0 14px; }
ul.summary li { padding: 5px 0; border-bottom: 1px solid var(--edge); display: grid;
  grid-template-columns: 9em 1fr; gap: 0 8px; } ul.summary a { color: inherit; }
ul.summary b { font-weight: 600; } .where { color: var(--soft); }
.verdict { white-space: nowrap; font-weight: 600; }
.verdict.holds { color: var(--yes); } .verdict.fails { color: var(--no); }
.verdict.mixed, .verdict.fails-in-part { color: var(--no); } .verdict.holds-in-part { color: var(--yes); }
.verdict.no-difference, .verdict.not-said, .verdict.not-measured, .verdict.other { color: var(--soft);
  font-weight: 500; }
.scroll { overflow-x: auto; max-width: 100%; min-width: 0; background:
    linear-gradient(90deg, var(--card) 40%, transparent) 0 0 / 40px 100% local no-repeat,
    linear-gradient(270deg, var(--card) 40%, transparent) 100% 0 / 40px 100% local no-repeat,
    linear-gradient(270deg, rgb(128 128 128 / 0.4), transparent) 100% 0 / 8px 100% scroll no-repeat; }
.scroll + .panels { margin-top: 18px; }
table { margin: 0; } caption { text-align: left; font-size: 13px; color: var(--soft); padding-bottom: 4px; }
table.plain th, table.plain td { padding: 4px 18px 4px 0; vertical-align: top; border-bottom: 1px solid var(--edge); }
table.plain .words { text-align: left; } table.plain .numbers { text-align: right; white-space: nowrap; }
table.plain td, table.plain th { overflow-wrap: normal; }
.heats { display: flex; flex-wrap: wrap; gap: 20px 28px; }
table.heat { border-collapse: separate; border-spacing: 2px; }
table.heat th { padding: 4px 8px 4px 0; text-align: left; font-weight: 500; color: var(--text);
  overflow-wrap: normal; }
table.heat thead th { color: var(--soft); vertical-align: bottom; } table.heat thead th + th { padding-left: 8px; }
table.heat td { padding: 5px 7px; min-width: 92px; text-align: left; border-radius: 4px; line-height: 1.3;
  background: rgb(var(--heat) / calc(var(--s, 0) * var(--heat-most))); color: var(--text); white-space: nowrap; }
.mean { font-size: 14px; } .best .mean { font-weight: 750; } .sd { font-size: 12px; }
.paper { display: block; font-size: 12px; color: inherit; opacity: 0.86; }
.keys .paper { display: inline; }
tr.lols td { box-shadow: inset 0 2px var(--text), inset 0 -2px var(--text); border-radius: 0; }
tr.lols td:last-child { box-shadow: inset 0 2px var(--text), inset 0 -2px var(--text), inset -2px 0 var(--text); }
tr.lols td:nth-child(2) { box-shadow: inset 0 2px var(--text), inset 0 -2px var(--text), inset 2px 0 var(--text); }
.chip { display: inline-block; padding: 0 6px; border-radius: 4px; font-size: 11px; background: var(--text);
  color: var(--card); vertical-align: 1px; }
.ramp { display: inline-block; width: 90px; height: 11px; border-radius: 3px; vertical-align: -1px; border: 1px solid
  var(--edge); background: linear-gradient(90deg, transparent, rgb(var(--heat) / var(--heat-most))); }
ul.keys { margin: 10px 0 0; gap: 4px 18px; } ul.keys + ul.keys { margin-top: 4px; }
ul.keys li { display: flex; align-items: center; gap: 6px; overflow-wrap: normal; } .keys svg { flex: none; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 320px), 1fr)); gap: 12px 16px; }
.panels.n1 { grid-template-columns: minmax(0, 425px); }
.panels.n2 { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 16px 40px; }
.panels.n2 > svg { flex: 1 1 340px; min-width: min(100%, 300px); } .panels.n2 > .scroll { flex: 0 1 auto; }
svg.chart { width: 100%; height: auto; }
.chart .title { font-size: 13px; font-weight: 600; fill: var(--text); }
.chart .tick { font-size: 11.5px; fill: var(--soft); } details summary { font-size: 13.5px; }
.chart .said { font-size: 11.5px; font-weight: 600; }
.chart .grid { stroke: var(--edge); fill: none; } .chart .axis { stroke: var(--line); fill: none; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .rule { fill: none; stroke-width: 1.5; }
.plain.rule { stroke: var(--soft); stroke-width: 1.2; } .whisker { fill: none; stroke-width: 1.2; opacity: 0.8; }
.whisker.plain { stroke: var(--text); } .band { opacity: 0.18; } .dots { opacity: 0.7; } .box { opacity: 0.9; }
.k6.said { fill: var(--soft); }
"""

# A colour of its own for each kind of series, whatever it is drawn as.
SERIES = """
polyline.kN, .kN.rule, .kN.whisker, .kN.mark .open { stroke: var(--kN); }
.kN.mark .open { fill: none; stroke-width: 1.8; }
.kN.mark, .kN.dots, .kN.band, .kN.box, .kN.said { fill: var(--kN); }
"""

REST = """
polyline.k0 { stroke-width: 2.6; } polyline.k1 { stroke-dasharray: 7 3; } polyline.k2 { stroke-dasharray: 3 3; }
polyline.k3 { stroke-dasharray: 9 3 2 3; } polyline.k4 { stroke-dasharray: 1.5 2.5; }
.k1.rule { stroke-dasharray: 7 3; } .k2.rule { stroke-dasharray: 3 3; }
@media (max-width: 600px) { main { padding: 18px 14px 40px; } h1 { font-size: 22px; } figure { padding: 12px 10px; }
  table.heat { border-spacing: 1px; } table.heat td { min-width: 76px; padding: 4px 6px; } .sd { display: block; }
  table.heat th { padding-right: 6px; font-size: 12.5px; position: sticky; left: 0; z-index: 1;
    background: var(--card); }
  table.heat thead th + th { position: static; padding-left: 6px; }
  table.plain th, table.plain td { padding-right: 7px; font-size: 12.5px; }
  table.plain tr > :last-child { padding-right: 0; }
  table.plain .verdict { white-space: normal; } ul.summary li { grid-template-columns: 1fr; } }
@media print { figure { break-inside: avoid; } details { display: none; } }
"""

STYLE = BASE + "".join(SERIES.replace("kN", f"k{kind}") for kind in range(KINDS)) + REST
