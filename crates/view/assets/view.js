// Makes the gallery scroll through any number of records, zooms images, and follows what runs. Every page works
// without it. Markup that is inserted comes from this server, whose templates escape what a dataset holds.
"use strict";
document.documentElement.classList.add("js");
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const grouped = (n) => Math.max(0, Math.round(n)).toLocaleString("en-US");

// The gallery. `top` is the offset of the window in pixels of all rows, which may be more than an element can be high: then
// the scroll bar stands for a share of the rows, and small movements move `top` by as much.
function gallery() {
  const port = one("#viewport"), grid = one("#grid");
  if (!port || !grid.children.length) return;
  const MOST = 8_000_000, CHUNK = 60, KEPT = 12;
  let total = Number(port.dataset.total), searching = "searching" in port.dataset;
  const first = Number(port.dataset.start);
  one("#pager").hidden = true;
  port.classList.add("virtual");
  port.tabIndex = 0;
  port.setAttribute("role", "region");
  port.setAttribute("aria-label", "Records");
  const space = document.createElement("div");
  space.className = "space";
  port.append(space);
  const chunks = new Map(), loading = new Map();
  let columns = 1, row = 1, top = 0, last = 0, drawn = "", idle = 0;

  function measure() {
    // What is left of the window, if that is enough to look at.
    const left = innerHeight - (port.getBoundingClientRect().top + scrollY) - 8;
    port.style.height = `${left > 420 ? left : Math.round(innerHeight * 0.85)}px`;
    const cell = grid.children[0];
    columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const gap = parseFloat(getComputedStyle(grid).rowGap) || 0;
    row = Math.max(1, cell.getBoundingClientRect().height + gap);
    space.style.height = `${Math.min(MOST, height())}px`;
  }
  const height = () => Math.max(port.clientHeight, Math.ceil(total / columns) * row);
  const range = () => Math.max(1, height() - port.clientHeight);
  const physical = () => Math.max(1, Math.min(MOST, height()) - port.clientHeight);
  const clamp = (value, most) => Math.min(Math.max(0, value), most);

  function url(start) {
    const at = new URL(port.dataset.cells, location.href);
    at.searchParams.set("start", start);
    at.searchParams.set("count", CHUNK);
    return at;
  }
  async function load(chunk) {
    const abort = new AbortController();
    loading.set(chunk, abort);
    try {
      const answer = await fetch(url(chunk * CHUNK), { signal: abort.signal });
      if (!answer.ok) return;
      const holder = document.createElement("template");
      holder.innerHTML = await answer.text();
      chunks.set(chunk, [...holder.content.children]);
      told(Number(answer.headers.get("x-total")), answer.headers.get("x-searching"));
      while (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
      drawn = "";
      draw();
    } catch (error) {
      if (error.name !== "AbortError") console.warn(error);
    } finally {
      loading.delete(chunk);
    }
  }
  function told(found, more) {
    searching = more !== null && more !== "";
    if (found === total) return;
    total = found;
    one("#total").textContent = `${grouped(total)} matches${searching ? " so far" : ""}`;
    space.style.height = `${Math.min(MOST, height())}px`;
  }
  function draw() {
    const from = Math.floor(top / row) * columns;
    const to = Math.min(total, from + (Math.ceil(port.clientHeight / row) + 1) * columns);
    const wanted = new Set();
    for (let chunk = Math.floor(from / CHUNK); chunk * CHUNK < to; chunk++) wanted.add(chunk);
    for (const [chunk, abort] of loading) if (!wanted.has(chunk)) abort.abort();
    for (const chunk of wanted) if (!chunks.has(chunk) && !loading.has(chunk)) load(chunk);
    const known = [...wanted].filter((chunk) => chunks.has(chunk));
    const state = `${from} ${to} ${known}`;
    if (state !== drawn) {
      drawn = state;
      const cells = [];
      for (let at = from; at < to; at++) {
        const chunk = chunks.get(Math.floor(at / CHUNK));
        cells.push((chunk && chunk[at % CHUNK]) || waiting());
      }
      grid.replaceChildren(...cells);
      one("#position").textContent = to > from ? `${grouped(from + 1)} – ${grouped(to)}` : "";
    }
    grid.style.transform = `translateY(${Math.round(port.scrollTop - (top - Math.floor(top / row) * row))}px)`;
    port.dataset.first = from;
  }
  function waiting() {
    const cell = document.createElement("li");
    cell.className = "cell waiting";
    cell.innerHTML = '<span class="picture"></span><span class="name">&nbsp;</span>';
    return cell;
  }
  function settle() {
    // The scroll bar shows the place again, and the URL states it.
    const scroll = height() > MOST ? Math.round((top / range()) * physical()) : top;
    if (Math.abs(scroll - port.scrollTop) > 1) { last = scroll; port.scrollTop = scroll; draw(); }
    const at = new URL(location.href), start = Math.floor(top / row) * columns;
    if (start) at.searchParams.set("start", start); else at.searchParams.delete("start");
    history.replaceState(null, "", at);
  }
  port.addEventListener("scroll", () => {
    const now = port.scrollTop, moved = now - last;
    last = now;
    if (height() <= MOST) top = now;
    else if (Math.abs(moved) < 3 * port.clientHeight) top += moved;
    else top = (now / physical()) * range();
    top = clamp(top, range());
    requestAnimationFrame(draw);
    clearTimeout(idle);
    idle = setTimeout(settle, 150);
  }, { passive: true });
  port.addEventListener("keydown", (event) => {
    const ends = { Home: 0, End: range() };
    if (!(event.key in ends) || event.target !== port) return;
    event.preventDefault();
    jump(ends[event.key]);
  });
  function jump(to) {
    top = clamp(to, range());
    settle();
    draw();
  }
  new ResizeObserver(() => {
    const at = Math.floor(top / row) * columns;
    measure();
    drawn = "";
    jump(Math.floor(at / columns) * row);
  }).observe(port);
  one(".jump").addEventListener("submit", (event) => {
    const value = one("#position-input").value;
    if (value === "") return;
    event.preventDefault();
    jump(Math.floor(Number(value) / columns) * row);
    port.focus();
  });
  measure();
  if (first % CHUNK === 0) chunks.set(first / CHUNK, [...grid.children]);
  jump(Math.floor(first / columns) * row);
  const follow = () => searching && load(Math.floor(total / CHUNK)).then(() => setTimeout(follow, 400));
  setTimeout(follow, 300);
}

// The image of a record: buttons and Ctrl + wheel zoom, layers are switched.
function stage() {
  const zoom = one("#zoom"), layers = one("#layers");
  if (!zoom) return;
  const fit = () => layers.getBoundingClientRect().width;
  let width = 0;
  function scale(factor, x = zoom.clientWidth / 2, y = zoom.clientHeight / 2) {
    if (!factor) { zoom.classList.remove("zoomed"); layers.style.width = ""; width = 0; return; }
    const before = fit(), to = Math.min(Math.max((width || before) * factor, 64), 32 * Number(zoom.dataset.width));
    const [fx, fy] = [zoom.scrollLeft + x, zoom.scrollTop + y];
    width = to;
    zoom.classList.add("zoomed");
    layers.style.width = `${to}px`;
    zoom.scrollLeft = (fx * to) / before - x;
    zoom.scrollTop = (fy * to) / before - y;
  }
  one(".zoom-buttons").hidden = false;
  zoom.tabIndex = 0;
  zoom.setAttribute("role", "region");
  zoom.setAttribute("aria-label", "Image, zoomable");
  const factors = { in: 1.4, out: 1 / 1.4, fit: 0 };
  all("[data-zoom]").forEach((button) => button.addEventListener("click", () => scale(factors[button.dataset.zoom])));
  zoom.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = zoom.getBoundingClientRect();
    scale(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  zoom.addEventListener("keydown", (event) => {
    const keys = { "+": 1.4, "=": 1.4, "-": 1 / 1.4, "0": 0 };
    if (event.key in keys) { event.preventDefault(); scale(keys[event.key]); }
  });
  function toggle(box) {
    all(`[data-layer="${box.dataset.toggle}"]`).forEach((layer) => layer.classList.toggle("layer-off", !box.checked));
  }
  all("[data-toggle]").forEach((box) => { toggle(box); box.addEventListener("change", () => toggle(box)); });
}

// A running check, or trial of the loader.
async function follow() {
  const part = one("[data-part]");
  if (!part) return;
  while (one("[data-running]", part)) {
    await new Promise((done) => setTimeout(done, 500));
    const answer = await fetch(part.dataset.part).catch(() => null);
    if (!answer || !answer.ok) continue;
    part.innerHTML = await answer.text();
    copying(part);
  }
}

function copying(root) {
  if (!navigator.clipboard) return;
  all("[data-copy]", root).forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    });
  });
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const link = one(`a[data-key="${CSS.escape(event.key)}"]`);
  if (link) location.assign(link.href);
  if (event.key === "/" && one("#q")) { event.preventDefault(); one("#q").focus(); }
});
all("select[data-submit]").forEach((select) => select.addEventListener("change", () => select.form.submit()));
if (one("[data-reload]")) setTimeout(() => location.reload(), 1000);
if (matchMedia("(max-width: 60rem)").matches) all(".classes details").forEach((classes) => { classes.open = false; });
gallery();
stage();
copying(document);
follow();
