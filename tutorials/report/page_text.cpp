// The page's style and its script, as they stand in it. Colors are those of the charts
// (tutorials/draw/chart.h).
#include "tutorials/report/page.h"

namespace pellucid::report {

const char* const kPageStyle = R"(* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1200px; padding: 1.5rem 1.2rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
header p { margin: 0; color: var(--soft); }
h1 { margin: 0 0 .5rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); font-size: 1.35rem; }
h3 { margin: 0; font-size: 1rem; }
a { color: var(--s0); } nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
nav a { padding: .35rem 0; }
:focus-visible { outline: 3px solid var(--s1); outline-offset: 2px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: .8rem 1.5rem; }
.facts dt { color: var(--soft); font-size: .9rem; }
.facts dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.facts small { display: block; color: var(--soft); font-size: .85rem; }
.warning { border-left: 4px solid var(--s1); padding-left: .8rem; }
figure { margin: .8rem 0 .2rem; min-width: 0; } figcaption { color: var(--soft); font-size: .95rem; }
.chart { width: 100%; touch-action: pan-y; } .chart .cursor { stroke: var(--ink); }
output { display: block; min-height: 1.5em; font-size: .9rem; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr));
  gap: 0 1.5rem; align-items: start; }
.charts.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.narrow { display: none; }
.toggles { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .5rem 0; padding: 0; border: 0; }
.toggles legend { float: left; margin-right: 1rem; padding: .3rem 0; color: var(--soft); }
.toggles label { padding: .3rem 0; } input { width: 1.1em; height: 1.1em; accent-color: var(--s0); }
figure:has(.t0:not(:checked)) .s0, figure:has(.t1:not(:checked)) .s1,
figure:has(.t2:not(:checked)) .s2 { display: none; }
details { margin: .8rem 0; } summary { padding: .35rem 0; cursor: pointer; color: var(--s0); }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right;
  overflow-wrap: normal; white-space: nowrap; }
@media (max-width: 700px) { .wide { display: none; } .narrow { display: block; }
  th, td { padding: .25rem .45rem; } }
th.text, td.text { text-align: left; } th { color: var(--soft); font-weight: 600; }
pre { margin: .4rem 0 0; font: .9rem/1.5 ui-monospace, monospace; white-space: pre-wrap; }
pre.scroll { padding: .7rem .9rem; border: 1px solid var(--line); border-radius: 6px; }
.samples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 320px), 1fr));
  gap: 1rem; margin: 0; padding: 0; list-style: none; }
.samples li { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 6px; }
.samples b { color: var(--s0); }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: .6rem 1rem; }
.maps figure { margin: 0; } .maps .chart { cursor: crosshair; }
.sentence { position: sticky; top: 0; z-index: 1; padding: .5rem 0; background: var(--paper);
  border-bottom: 1px solid var(--line); }
#tokens { margin: 0; font: .95rem/1.9 ui-monospace, monospace; }
#tokens span { padding: .15em .04em; border-radius: 3px; border: 1px solid transparent;
  background: color-mix(in srgb, var(--s0) calc(var(--weight, 0) * 60%), transparent); }
#tokens .looks { border-color: var(--s1); }
)";

const char* const kPageScript = R"('use strict';
const number = (x) => x.toLocaleString('en-US', {maximumSignificantDigits: 5});

// The place of the pointer in a drawing's own units.
function place(svg, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return [(event.clientX - box.left) / box.width * view.width,
          (event.clientY - box.top) / box.height * view.height];
}

function onPointer(svg, show) {
  for (const name of ['pointerdown', 'pointermove'])
    svg.addEventListener(name, (event) => show(...place(svg, event)));
}

// Arrow keys call move(dx, dy).
function onArrows(svg, move) {
  const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  svg.addEventListener('keydown', (event) => {
    if (!steps[event.key]) return;
    event.preventDefault();
    move(...steps[event.key]);
  });
}

// Curves: a line at the point nearest to the pointer, and the values there in words.
for (const svg of document.querySelectorAll('[data-frame]')) {
  const [left, right, top, bottom, x0, x1] = svg.dataset.frame.split(' ').map(Number);
  const curves = [...svg.querySelectorAll('[data-x]')].map((curve) => ({
    name: curve.dataset.name,
    x: curve.dataset.x.split(' ').map(Number),
    y: curve.dataset.y.split(' ').map(Number),
  }));
  if (curves.length === 0) continue;
  const output = svg.closest('figure').querySelector('output');
  const cursor = document.createElementNS(svg.namespaceURI, 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', top);
  cursor.setAttribute('y2', bottom);

  const nearest = (xs, x) =>
    xs.reduce((best, value, i) => Math.abs(value - x) < Math.abs(xs[best] - x) ? i : best, 0);
  let at = 0;  // a point of the first curve
  const show = (i) => {
    at = Math.min(Math.max(i, 0), curves[0].x.length - 1);
    const x = curves[0].x[at], px = left + (x - x0) / (x1 - x0) * (right - left);
    cursor.setAttribute('x1', px);
    cursor.setAttribute('x2', px);
    svg.append(cursor);
    output.textContent = `${svg.dataset.xName} ${number(x)}: ` + curves.map((curve) => {
      const k = nearest(curve.x, x);
      const where = Math.round(curve.x[k]) === Math.round(x) ? '' : ` (at ${number(Math.round(curve.x[k]))})`;
      return `${curve.name} ${number(curve.y[k])}${where}`;
    }).join('; ');
  };
  onPointer(svg, (px) =>
    show(nearest(curves[0].x, x0 + (px - left) / (right - left) * (x1 - x0))));
  onArrows(svg, (dx) => show(at + dx));
}

// Attention maps: a cell's weight in words, and the sentence as the row's token sees it.
const tokens = [...document.querySelectorAll('#tokens span')];
for (const map of document.querySelectorAll('[data-cells]')) {
  const columns = Number(map.dataset.columns), low = Number(map.dataset.low),
        high = Number(map.dataset.high), cells = map.dataset.cells;
  const frame = map.querySelector('.cells');
  const [x0, y0, width] = ['x', 'y', 'width'].map((name) => Number(frame.getAttribute(name)));
  const weight = (row, column) => {
    const code = cells.slice(2 * (row * columns + column), 2 * (row * columns + column) + 2);
    return code === '..' ? 0 : low + (high - low) * parseInt(code, 36) / 1295;
  };
  const inside = (i) => Math.min(Math.max(Math.floor(i), 0), columns - 1);
  let row = 0, column = 0;
  const show = (r, c) => {
    row = inside(r);
    column = inside(c);
    tokens.forEach((token, i) => {
      token.style.setProperty('--weight', weight(row, i));
      token.classList.toggle('looks', i === row);
    });
    const named = (i) => `${tokens[i].textContent} (${i})`;
    document.getElementById('weight').textContent = map.querySelector('title').textContent + ': ' +
      (column > row ? `${named(row)} cannot see ${named(column)}, which comes later`
                    : `${named(row)} looks at ${named(column)} with weight ${weight(row, column).toFixed(3)}`);
  };
  onPointer(map, (x, y) => show((y - y0) / width * columns, (x - x0) / width * columns));
  onArrows(map, (dx, dy) => show(row + dy, column + dx));
}
)";

}  // namespace pellucid::report
