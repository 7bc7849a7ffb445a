"use strict";
// Draws the curves of the page: all charts share one range of x, one cursor and one set of visible runs.
const data = JSON.parse(document.getElementById("data").textContent);
const INKS = 10; // of page.css, for a dark ground and a light one
const inkOf = (place) => `var(--run${place % INKS})`;
const VALIDATION = inkOf(1);
// From the eleventh run on, colours repeat with other dash patterns; the edge is the border style beside names.
const LINES = [{ train: "", val: "5 3", edge: "solid" }, { train: "14 3 2 3", val: "5 3 1 3", edge: "dashed" }, { train: "2 2.5", val: "5 7", edge: "dotted" }];
const lineOf = (place) => LINES[Math.floor(place / INKS) % LINES.length];
const MARGIN = { left: 52, right: 14, top: 8, bottom: 34 };
const view = { log: false, smooth: 0, time: false, filter: "", hidden: new Set(), windows: {}, shots: {}, cursor: null };
const figures = [];

const make = (name, attributes = {}, parent = null, text = "") => {
  const svg = ["svg", "path", "line", "text", "rect", "g", "circle"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  if (parent) parent.append(made);
  return made;
};

const number = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "n/a";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return value.toLocaleString("en");
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
};

// A prefix that all names share distinguishes none of them, and a chart has no room for it.
const shared = data.runs.length < 2 ? 0 : (() => {
  let same = 0;
  while (data.runs.every((name) => same < name.length && name[same] === data.runs[0][same])) same++;
  return data.runs[0].lastIndexOf(" ", same - 1) + 1;
})();

const ink = (curve) => (data.runs.length === 1 && curve.val ? VALIDATION : inkOf(curve.run));
const label = (curve) => {
  const kind = curve.val ? "val" : "train";
  return data.runs.length === 1 ? kind : `${data.runs[curve.run].slice(shared)}${curve.val ? " val" : ""}`;
};

// Times begin at each run's first known point, so that runs of different days are drawn over each other.
const start = {};
for (const chart of data.charts)
  for (const curve of chart.curves)
    for (const moment of curve.t || [])
      if (moment !== null) start[curve.run] = Math.min(start[curve.run] ?? Infinity, moment);

const axisOf = (chart) => (view.time && chart.curves.some((curve) => curve.t) ? "minutes" : chart.axis);
const xsOf = (curve, axis) =>
  axis !== "minutes" ? curve.x : (curve.t || []).map((moment) => (moment === null ? null : (moment - start[curve.run]) / 60));

const smoothed = (values) => {
  if (!view.smooth) return values;
  let average = 0, weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    average = average * view.smooth + value * (1 - view.smooth);
    weight = weight * view.smooth + 1 - view.smooth;
    return average / weight;
  });
};

const niceStep = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((step) => power * step >= rough) || 10);
};
const ticks = (low, high, most, whole = false) => {
  if (!(high > low)) return [low];
  const step = Math.max(niceStep((high - low) / most), whole ? 1 : 0), found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
};
// Use as many digits as it takes to distinguish the marks of one axis.
const labelled = (marks) => {
  const apart = Math.min(...marks.slice(1).map((mark, i) => mark - marks[i]), Infinity);
  return marks.map((mark) => {
    const size = Math.abs(mark), places = Math.floor(Math.log10(size)) - Math.floor(Math.log10(apart)) + 1;
    const digits = Number.isFinite(places) ? Math.min(Math.max(places, 1), 15) : 3;
    if (size !== 0 && (size < 1e-4 || size >= 1e6)) return mark.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
    return Number.isInteger(mark) ? number(mark) : String(Number(mark.toPrecision(Math.max(digits, 4))));
  });
};
const logTicks = (low, high) => {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    for (const factor of high / low < 1e3 ? [1, 2, 5] : [1]) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
    }
  return found;
};

const frameOf = (figure) => {
  const chart = figure.chart, axis = axisOf(chart), window = view.windows[axis];
  const curves = chart.curves.filter((curve) => !view.hidden.has(curve.run));
  const shown = curves.map((curve) => ({ curve, x: xsOf(curve, axis), y: smoothed(curve.y) }));
  let [left, right] = window || [Infinity, -Infinity];
  if (!window)
    for (const { x } of shown) for (const at of x) if (at !== null) { left = Math.min(left, at); right = Math.max(right, at); }
  if (!(right >= left)) return null;
  if (right === left) [left, right] = [left - 1, right + 1];
  let low = Infinity, high = -Infinity, hidden = 0;
  for (const { curve, x, y } of shown)
    x.forEach((at, i) => {
      if (at === null || at < left || at > right) return;
      for (const value of [y[i], view.smooth ? null : curve.low?.[i], view.smooth ? null : curve.high?.[i]]) {
        if (value === null || value === undefined) continue;
        if (view.log && value <= 0) { hidden += value === y[i]; continue; }
        low = Math.min(low, value); high = Math.max(high, value);
      }
    });
  if (!(high >= low)) { low = view.log ? 0.1 : 0; high = 1; }
  if (high === low) { const room = Math.abs(low) * 0.1 || 1; low = view.log ? low / 2 : low - room; high += room; }
  const width = figure.svg.clientWidth || 400, height = figure.svg.clientHeight || 200;
  const marks = view.log ? logTicks(low, high) : ticks(low, high, height / 30), labels = labelled(marks);
  const edge = Math.max(MARGIN.left, 9 + 6.5 * Math.max(...labels.map((label) => label.length), 0)); // none is cut
  const inner = width - edge - MARGIN.right, tall = height - MARGIN.top - MARGIN.bottom;
  const share = view.log ? (value) => Math.log(value / low) / Math.log(high / low) : (value) => (value - low) / (high - low);
  return {
    axis, shown, left, right, low, high, width, height, hidden, marks, labels, edge,
    x: (at) => edge + ((at - left) / (right - left)) * inner,
    y: (value) => MARGIN.top + (1 - share(value)) * tall,
    at: (pixel) => left + ((pixel - edge) / inner) * (right - left),
  };
};

const line = (frame, x, y) => {
  let path = "", pen = false;
  x.forEach((at, i) => {
    const value = y[i], off = at === null || value === null || (view.log && value <= 0);
    // Values that are not finite leave a gap, which is never bridged.
    if (off) { pen = false; return; }
    path += `${pen ? "L" : "M"}${frame.x(at).toFixed(1)} ${frame.y(value).toFixed(1)}`;
    pen = true;
  });
  return path;
};
const band = (frame, x, low, high) => {
  const inside = x.map((at, i) => i).filter((i) => x[i] !== null && low[i] !== null && high[i] !== null && !(view.log && low[i] <= 0));
  if (inside.length < 2) return "";
  const there = inside.map((i) => `${frame.x(x[i]).toFixed(1)} ${frame.y(high[i]).toFixed(1)}`);
  const back = inside.reverse().map((i) => `${frame.x(x[i]).toFixed(1)} ${frame.y(low[i]).toFixed(1)}`);
  return `M${there.join("L")}L${back.join("L")}Z`;
};

const draw = (figure) => {
  const svg = figure.svg, frame = (figure.frame = frameOf(figure));
  svg.replaceChildren();
  figure.drawn = true;
  if (!frame) { make("text", { x: 10, y: 20 }, svg, "nothing to draw"); return read(figure); }
  svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  frame.marks.forEach((tick, i) => {
    const y = frame.y(tick);
    make("line", { class: "tick", x1: frame.edge, x2: frame.width - MARGIN.right, y1: y, y2: y }, svg);
    make("text", { x: frame.edge - 5, y: y + 4, "text-anchor": "end" }, svg, frame.labels[i]);
  });
  const along = ticks(frame.left, frame.right, frame.width / 70, frame.axis !== "minutes"), told = labelled(along);
  along.forEach((tick, i) => {
    const most = frame.width - told[i].length * 3.5 - 2; // half of its width: it is never cut
    make("text", { x: Math.min(frame.x(tick), most), y: frame.height - 19, "text-anchor": "middle" }, svg, told[i]);
  });
  const name = frame.axis === "minutes" ? "minutes since the start" : frame.axis;
  make("text", { class: "axis", x: (frame.edge + frame.width - MARGIN.right) / 2, y: frame.height - 4, "text-anchor": "middle" }, svg, name);
  const clip = make("svg", { x: frame.edge, y: 0, width: frame.width - frame.edge - MARGIN.right, height: frame.height - MARGIN.bottom,
    viewBox: `${frame.edge} 0 ${frame.width - frame.edge - MARGIN.right} ${frame.height - MARGIN.bottom}`, preserveAspectRatio: "none" }, svg);
  for (const { curve, x } of frame.shown)
    if (curve.low && !view.smooth) make("path", { d: band(frame, x, curve.low, curve.high), fill: ink(curve), opacity: 0.18 }, clip);
  for (const { curve, x, y } of frame.shown) {
    const known = x.filter((at, i) => at !== null && y[i] !== null).length;
    const dashes = data.runs.length > 1 ? lineOf(curve.run)[curve.val ? "val" : "train"] : "", dash = dashes ? { "stroke-dasharray": dashes } : {};
    make("path", { d: line(frame, x, y), fill: "none", stroke: ink(curve), "stroke-width": 1.6, "stroke-linejoin": "round", ...dash }, clip);
    if (known === 1) x.forEach((at, i) => at !== null && y[i] !== null && make("circle", { cx: frame.x(at), cy: frame.y(y[i]), r: 3, fill: ink(curve) }, clip));
    if (frame.axis === "minutes") continue;
    for (const mark of curve.marks) make("line", { class: "mark", x1: frame.x(mark), x2: frame.x(mark), y1: 0, y2: frame.height }, clip);
    let end = -Infinity;
    for (const gap of curve.bad.filter((at) => at >= frame.left && at <= frame.right)) {
      if (frame.x(gap) > end + 12) make("text", { class: "nan", x: frame.x(gap), y: 14 }, clip, "✗");
      end = frame.x(gap); // those that follow close upon each other are one
    }
  }
  figure.cursor = make("line", { class: "cursor", y1: 0, y2: frame.height - MARGIN.bottom, visibility: "hidden" }, svg);
  figure.pick = make("rect", { class: "pick", y: 0, height: frame.height - MARGIN.bottom, width: 0 }, svg);
  read(figure);
};

const nearest = (x, to) => {
  let found = -1;
  x.forEach((at, i) => { if (at !== null && (found < 0 || Math.abs(at - to) < Math.abs(x[found] - to))) found = i; });
  return found;
};

// The values of the curves at the cursor, or else the last ones. A point merged from several shows their range.
const read = (figure) => {
  const frame = figure.frame, place = view.cursor;
  figure.read.replaceChildren();
  if (!frame) return;
  const here = place && place.axis === frame.axis ? place.at : null;
  figure.cursor.setAttribute("visibility", here === null ? "hidden" : "visible");
  if (here !== null) for (const key of ["x1", "x2"]) figure.cursor.setAttribute(key, frame.x(here));
  const rows = [];
  for (const { curve, x } of frame.shown) {
    let i = here === null ? x.length - 1 : nearest(x, here);
    if (i >= 0) rows.push({ curve, at: x[i], value: curve.y[i], low: curve.low?.[i], high: curve.high?.[i] });
  }
  const way = rows.find((row) => row.curve.better)?.curve.better;
  if (way) rows.sort((a, b) => (way === "lower" ? 1 : -1) * ((a.value ?? Infinity) - (b.value ?? Infinity)));
  for (const row of rows) {
    const broken = row.value === null || (here === null && row.curve.bad.some((at) => at > row.curve.x[row.curve.x.length - 1]));
    const range = row.low !== undefined && row.low !== null && row.low !== row.high ? ` (${number(row.low)} to ${number(row.high)})` : "";
    const one = make("span", { title: data.runs[row.curve.run] }, figure.read);
    make("b", {}, one, label(row.curve));
    make("span", {}, one, ` ${broken ? "NaN/inf" : number(row.value) + range}`);
    one.style.color = ink(row.curve);
    if (row.curve.run >= INKS) one.style.borderBottom = `2px ${lineOf(row.curve.run).edge} currentColor`;
  }
  if (here !== null && rows.length) make("span", {}, figure.read, `${frame.axis} ${number(rows[0].at)}`);
  if (frame.hidden) make("span", {}, figure.read, `${frame.hidden} values at or below 0 cannot be shown on a log axis`);
};

const redraw = () => {
  for (const figure of figures) {
    figure.element.hidden = !matches(figure.chart.title);
    figure.drawn = false;
    if (!figure.element.hidden && figure.inView) draw(figure);
  }
  remember();
};
const matches = (title) => {
  if (!view.filter) return true;
  try { return new RegExp(view.filter, "i").test(title); } catch { return title.toLowerCase().includes(view.filter.toLowerCase()); }
};

const listen = (figure) => {
  const svg = figure.svg;
  let from = null;
  const at = (event) => {
    const frame = figure.frame, box = svg.getBoundingClientRect();
    return Math.min(frame.right, Math.max(frame.left, frame.at(event.clientX - box.left)));
  };
  svg.addEventListener("pointermove", (event) => {
    if (!figure.frame) return;
    const here = at(event);
    view.cursor = { axis: figure.frame.axis, at: here };
    if (from !== null) {
      const [left, right] = [Math.min(from, here), Math.max(from, here)].map(figure.frame.x);
      figure.pick.setAttribute("x", left); figure.pick.setAttribute("width", right - left);
    }
    for (const other of figures) if (other.drawn) read(other);
  });
  svg.addEventListener("pointerdown", (event) => { if (figure.frame) { from = at(event); if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId); } });
  svg.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const here = at(event), [left, right] = [Math.min(from, here), Math.max(from, here)];
    from = null;
    if (figure.frame.x(right) - figure.frame.x(left) > 6) { view.windows[figure.frame.axis] = [left, right]; redraw(); }
    else figure.pick.setAttribute("width", 0);
  });
  svg.addEventListener("pointercancel", () => { from = null; });
  svg.addEventListener("pointerleave", () => { view.cursor = null; for (const other of figures) if (other.drawn) read(other); });
  svg.addEventListener("dblclick", () => { delete view.windows[figure.frame?.axis]; redraw(); });
};

const control = (tools, name, element, change) => {
  const box = make("label", {}, tools, `${name} `);
  box.append(element);
  element.addEventListener("input", () => { change(element); redraw(); });
  return element;
};

const build = () => {
  const place = document.getElementById("charts");
  if (!data.charts.length) { place.replaceChildren(make("p", { class: "dim" }, null, "no metric was reported")); return; }
  recall();
  const tools = make("div", { class: "tools" }, place);
  const search = make("input", { type: "search", placeholder: "metrics (regex)", id: "filter", "aria-label": "filter metrics" }, tools);
  search.value = view.filter;
  search.addEventListener("input", () => { view.filter = search.value; redraw(); });
  const log = make("input", { type: "checkbox", id: "log" });
  log.checked = view.log;
  control(tools, "log", log, (box) => { view.log = box.checked; });
  const smooth = make("input", { type: "range", min: 0, max: 0.99, step: 0.01, id: "smooth" });
  smooth.value = view.smooth;
  control(tools, "smoothing", smooth, (box) => { view.smooth = Number(box.value); });
  const time = make("input", { type: "checkbox", id: "time" });
  time.checked = view.time;
  control(tools, "by time", time, (box) => { view.time = box.checked; });
  const reset = make("button", { id: "reset", type: "button" }, tools, "whole curves");
  reset.addEventListener("click", () => { view.windows = {}; redraw(); });
  make("span", {}, tools, "drag to zoom · double-click for all · click a name to enlarge");
  const grid = make("div", { class: "grid" }, place);
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.find((one) => one.element === entry.target);
      figure.inView = entry.isIntersecting;
      if (figure.inView && !figure.drawn) draw(figure);
    }
  }, { rootMargin: "300px" });
  for (const chart of data.charts) {
    const element = make("figure", {}, grid), caption = make("figcaption", {}, element);
    const name = make("button", { type: "button" }, caption, chart.title);
    const figure = { chart, element, svg: make("svg", { role: "img", "aria-label": chart.title }, element), read: make("div", { class: "read" }, element), drawn: false };
    name.addEventListener("click", () => { element.classList.toggle("large"); draw(figure); });
    figures.push(figure);
    listen(figure);
    seen.observe(element);
  }
  new ResizeObserver(redraw).observe(grid);
};

// -- the table of runs

const sortBy = (table, column) => {
  const head = table.tHead.rows[0].cells, body = table.tBodies[0];
  const down = head[column].getAttribute("aria-sort") === "ascending";
  for (const cell of head) cell.removeAttribute("aria-sort");
  head[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => { const cell = row.cells[column]; return cell.dataset.value ?? cell.textContent; };
  const rows = [...body.rows].sort((a, b) => {
    const [one, other] = [key(a), key(b)], [x, y] = [Number(one), Number(other)];
    const numeric = one.trim() !== "" && other.trim() !== "" && !Number.isNaN(x) && !Number.isNaN(y);
    return (down ? -1 : 1) * (numeric ? x - y : one.localeCompare(other, "en", { numeric: true }));
  });
  body.append(...rows);
};
for (const table of document.querySelectorAll("#runs")) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => cell.querySelector("button")?.addEventListener("click", () => sortBy(table, column)));
  table.addEventListener("change", (event) => {
    const run = Number(event.target.dataset.run);
    if (event.target.checked) view.hidden.delete(run); else view.hidden.add(run);
    redraw();
  });
}
for (const cell of document.querySelectorAll("td[data-run], h2[data-run]")) {
  const curves = data.charts.flatMap((chart) => chart.curves).filter((curve) => curve.run === Number(cell.dataset.run));
  if (curves.length && data.runs.length > 1) cell.style.borderLeft = `4px ${lineOf(cell.dataset.run).edge} ${inkOf(cell.dataset.run)}`, cell.style.paddingLeft = ".5rem";
}

// -- logged images and texts, one of each name at the chosen step

const showImages = () => {
  for (const place of document.querySelectorAll(".images"))
    for (const set of data.images.filter((one) => one.run === Number(place.dataset.run))) {
      const element = make("figure", {}, place), caption = make("figcaption", {}, element), last = set.shots.length - 1;
      make("b", {}, caption, set.name);
      const told = make("span", { class: "read" }, caption, "too large for a page");
      if (last < 0) continue;
      const picture = set.text ? make("pre", {}, element) : make("img", { alt: set.name }, element), key = `${set.run} ${set.name}`;
      picture.addEventListener("load", () => picture.classList.toggle("small", picture.naturalWidth < 160));
      const show = (index) => {
        const shot = set.shots[index], step = shot.step === null ? "no step" : `step ${number(shot.step)}`;
        const left = set.count > last + 1 ? ` · ${last + 1} of ${set.count}` : "";
        told.textContent = step + (shot.attempt ? ` · attempt ${shot.attempt}` : "") + left;
        if (set.text) picture.textContent = shot.text; else picture.src = shot.src;
      };
      const kept = set.shots.findIndex((shot) => shot.step === view.shots[key]), from = kept < 0 ? last : kept;
      if (last > 0) {
        const slider = make("input", { type: "range", min: 0, max: last, value: from, "aria-label": `step of ${set.name}` }, element);
        slider.addEventListener("input", () => { show(slider.valueAsNumber); view.shots[key] = set.shots[slider.valueAsNumber].step; remember(); });
      }
      show(from);
    }
};

// -- a page that is rewritten while a run goes on: the reader's choices are kept

const KEPT = "mpstui " + location.pathname;
const remember = () => {
  try { sessionStorage.setItem(KEPT, JSON.stringify({ ...view, hidden: [...view.hidden], cursor: null })); } catch { /* a private window keeps nothing */ }
};
const recall = () => {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) || "{}");
    Object.assign(view, kept, { hidden: new Set(kept.hidden || []), cursor: null });
    for (const box of document.querySelectorAll("#runs input")) box.checked = !view.hidden.has(Number(box.dataset.run));
  } catch { /* nothing is kept */ }
};
build();
showImages();
const reload = document.querySelector("meta[name=reload]");
if (reload) setTimeout(() => location.reload(), Number(reload.content) * 1000);
