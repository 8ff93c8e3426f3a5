// Drives every page of `shardtool view` in a headless Chromium: node test.js SHARDTOOL SCRATCH [SCREENSHOTS]
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import axe from "axe-core";
import puppeteer from "puppeteer-core";

const [shardtool, scratch, screenshots] = process.argv.slice(2);
const children = [];

// Starts a server and returns its URL without the last slash.
function serve(dataset, ...options) {
  const child = spawn(shardtool, ["view", dataset, "--port", "0", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return new Promise((done, failed) => {
    let text = "";
    child.stdout.on("data", (data) => { text += data; if (text.includes("\n")) done(text.trim().replace(/\/$/, "")); });
    child.on("exit", (status) => failed(new Error(`shardtool view ended with ${status}`)));
  });
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--force-color-profile=srgb"] });
const page = await browser.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
page.on("request", (request) => { if (!/^(http:\/\/127\.0\.0\.1|data:)/.test(request.url())) problems.push(`foreign request: ${request.url()}`); });

async function open(url) {
  const answer = await page.goto(url, { waitUntil: "networkidle0" });
  return answer.status();
}
const texts = (selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent.trim()));
const until = (what, ...values) => page.waitForFunction(what, { timeout: 20_000 }, ...values);

// Checks accessibility in both colour schemes, and that nothing is wider than the window.
async function check(name, urls) {
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400], ["dark", 400]]) {
    await page.setViewport({ width, height: width === 400 ? 860 : 900, deviceScaleFactor: 1 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await open(urls);
    await page.evaluate(axe.source).catch(() => page.addScriptTag({ content: axe.source }));
    const result = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const found = result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join("; ")} ${v.nodes[0].failureSummary}`);
    assert.deepEqual(found, [], `${name}, ${scheme}, ${width} px`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${name} is ${wide} px wide in a window of ${width}`);
    if (screenshots) {
      fs.mkdirSync(screenshots, { recursive: true });
      await page.screenshot({ path: path.join(screenshots, `${name}-${scheme}-${width}.jpg`), type: "jpeg", quality: 86 });
    }
  }
  await page.setViewport({ width: 1280, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
}

try {
  const dataset = path.join(scratch, "demo", "dataset");
  const base = await serve(dataset);

  // Every page, accessible, light and dark, wide and narrow.
  await check("gallery", `${base}/train`);
  await check("filtered", `${base}/train?filter=image%2Fclass%2Flabel%3D3&sort=-image_length`);
  await check("record", `${base}/train/record/7`);
  await check("columns", `${base}/train/columns`);
  await check("health", `${base}/-/health`);
  await check("loader", `${base}/train/loader`);
  const changed = path.join(scratch, "changed");
  fs.cpSync(dataset, changed, { recursive: true });
  fs.writeFileSync(path.join(scratch, "labels.csv"), "key,label\nowl/000.jpg,heron\n");
  execFileSync(shardtool, ["column", "replace", changed, path.join(scratch, "labels.csv"), "--missing", "keep", "--author", "ada"]);
  execFileSync(shardtool, ["delete", changed, "--where", "image/class/text=lizard", "--message", "withdrawn"]);
  execFileSync(shardtool, ["tag", changed, "paper"]);
  const history = await serve(changed);
  await check("history", `${history}/-/history?from=1&to=3`);
  await until(() => [...document.querySelectorAll("#comparison img")].filter((i) => i.naturalWidth > 0).length > 3);
  assert.match(await page.$eval("#comparison", (part) => part.textContent), /removed.*owl.*heron/s);
  await check("missing", `${base}/nothing`);
  // Those of the page that does not exist are expected.
  problems.splice(0, problems.length, ...problems.filter((problem) => !problem.includes("404")));

  // The gallery: thumbnails appear, a class filters by click, the search finds keys.
  await open(`${base}/train`);
  await until(() => [...document.querySelectorAll("#grid img")].filter((i) => i.naturalWidth > 0).length > 8);
  assert.equal(await page.$eval("#pager", (pager) => pager.hidden), true, "the script scrolls");
  await Promise.all([page.waitForNavigation(), page.click(".classes li:nth-child(2) a")]);
  assert.match((await texts("#total"))[0], /^60 matches of 360$/);
  await page.type("#q", "007");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.match((await texts("#total"))[0], /^1 match of 360$/);
  await Promise.all([page.waitForNavigation(), page.click("#grid a")]);
  assert.match((await texts("h1"))[0], /007\.jpg$/);

  // The record: zoom, layers, draws are repeatable, keys lead to neighbours.
  await open(`${base}/train/record/7`);
  const width = () => page.$eval("#layers", (layers) => layers.getBoundingClientRect().width);
  const before = await width();
  await page.click('[data-zoom="in"]');
  assert.ok((await width()) > before * 1.3, "zoomed in");
  await page.click('[data-zoom="fit"]');
  assert.equal(await width(), before);
  assert.equal(await page.$$eval(".draws img", (all) => all.length), 4);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("ArrowRight")]);
  assert.match(page.url(), /record\/8\?/);

  // A bar of a histogram filters.
  await open(`${base}/train/columns`);
  const bar = await page.$(".histogram a");
  const words = await bar.evaluate((a) => a.getAttribute("aria-label"));
  const href = await bar.evaluate((a) => a.getAttribute("href"));
  await open(base + href);
  assert.equal((await texts("#total"))[0].split(" ")[0], words.match(/([\d,]+) records?$/)[1]);

  // Health: the map turns green; after a bit is flipped, one shard is red, and its record says so.
  await open(`${base}/-/health`);
  await Promise.all([page.waitForNavigation(), page.click(".action button")]);
  await until(() => /ended after/.test(document.querySelector("#health").textContent));
  assert.equal((await page.$$('.map [data-state="good"]')).length, 4);
  const damaged = await serve(path.join(scratch, "demo", "damaged"));
  await open(`${damaged}/-/health`);
  await Promise.all([page.waitForNavigation(), page.click(".action button")]);
  await until(() => /ended after/.test(document.querySelector("#health").textContent));
  assert.equal((await page.$$('.map [data-state="damaged"]')).length, 1);
  assert.equal((await page.$$(".strip .strip-bad")).length, 1, "the damaged record has its place in its shard");
  if (screenshots) await page.screenshot({ path: path.join(screenshots, "damage-light-1280.jpg"), type: "jpeg", quality: 86 });
  await Promise.all([page.waitForNavigation(), page.click(".damage tbody a")]);
  assert.match((await texts(".damage h2"))[0], /cannot be read/);
  await check("damaged-record", page.url());

  // The loader: a trial runs, its curves are drawn while it does, and it can be cancelled.
  const schedule = encodeURIComponent("0: 1 where image/class/label=0; 1: 1");
  await open(`${base}/train/loader?batch=32&size=64&seconds=2&schedule=${schedule}`);
  await Promise.all([page.waitForNavigation(), page.click("button.main")]);
  await until(() => document.querySelectorAll("#trial .curve polyline").length === 3);
  await until(() => /Ended after/.test(document.querySelector("#trial").textContent));
  assert.match((await texts("#trial .verdict"))[0], /bounds the rate/);
  assert.match((await texts("main pre"))[0], /RandomResizedCrop\(64\)/);
  assert.match((await texts("main pre"))[0], /st\.Scheduled\(/);
  assert.ok((await texts("#trial h2")).includes("Members of the schedule"));
  await check("trial", page.url());
  await open(`${base}/train/loader?batch=32&seconds=300&step=50`);
  await Promise.all([page.waitForNavigation(), page.click("button.main")]);
  await until(() => document.querySelector("#trial progress"));
  await Promise.all([page.waitForNavigation(), page.click("#trial .progress button")]);
  await until(() => /Cancelled after/.test(document.querySelector("#trial").textContent));

  // Markup in keys and classes is text.
  const photos = path.join(scratch, "photos");
  const evil = "<img src=x onerror=document.title='owned'>";
  fs.mkdirSync(path.join(photos, evil), { recursive: true });
  const source = path.join(scratch, "demo", "photos", "owl");
  fs.readdirSync(source).slice(0, 5).forEach((name) => fs.copyFileSync(path.join(source, name), path.join(photos, evil, name)));
  execFileSync(shardtool, ["pack", photos, path.join(scratch, "evil")], { stdio: "ignore" });
  const hostile = await serve(path.join(scratch, "evil"));
  for (const place of ["/train", "/train/cells", "/train/record/0", "/train/columns", "/train/loader", "/-/health"]) {
    await open(hostile + place);
    assert.notEqual(await page.title(), "owned", place);
    assert.equal((await page.$$("img[src=x]")).length, 0, place);
  }
  // A part of a page names no icon, for which the browser then asks.
  problems.splice(0, problems.length, ...problems.filter((problem) => !problem.includes("404")));
  await open(`${hostile}/train`);
  assert.ok((await texts(".cell .class"))[0].includes(evil), "it is shown as text");

  // Another host needs the token, which a browser keeps.
  const guarded = new URL(await serve(dataset, "--host", "0.0.0.0"));
  const local = `http://127.0.0.1:${guarded.port}/`;
  assert.equal(await open(local), 403);
  assert.equal(await open(local + guarded.search), 200);
  assert.equal(await open(local), 200);
  assert.ok(!page.url().includes("token"));
  problems.splice(0, problems.length, ...problems.filter((problem) => !problem.includes("403")));

  // Millions of records: the script's scroll bar reaches the middle and the end.
  const large = process.env.LARGE;
  if (large) {
    const site = await serve(large);
    await open(`${site}/train`);
    const total = await page.$eval("#viewport", (port) => Number(port.dataset.total));
    for (const position of [Math.floor(total / 2), total - 1, 12]) {
      await page.$eval("#position-input", (input) => { input.value = ""; });
      await page.type("#position-input", String(position));
      await page.keyboard.press("Enter");
      const shown = (at) => {
        const port = document.querySelector("#viewport"), first = Number(port.dataset.first);
        const links = [...document.querySelectorAll("#grid a")].map((a) => Number(new URL(a.href).searchParams.get("at")));
        return first <= at && links.includes(at);
      };
      await until(shown, position);
    }
    // The bar is dragged to three quarters.
    await page.$eval("#viewport", (port) => { port.scrollTop = (port.scrollHeight - port.clientHeight) * 0.75; });
    await until((total) => Math.abs(Number(document.querySelector("#viewport").dataset.first) / total - 0.75) < 0.01, total);
    await until(() => !document.querySelector("#grid .waiting"));
    const at = await page.$eval("#viewport", (port) => Number(port.dataset.first));
    await page.$eval("#viewport", (port) => port.scrollBy(0, 400));
    await until((at) => { const now = Number(document.querySelector("#viewport").dataset.first); return now > at && now < at + 200; }, at);
  }

  // Without the script.
  await page.setJavaScriptEnabled(false);
  await open(`${base}/train`);
  assert.equal(await page.$$eval("#grid .cell", (all) => all.length), 60);
  await Promise.all([page.waitForNavigation(), page.click('a[rel="next"]')]);
  assert.match((await texts("#position"))[0], /^61 – 120$/);
  await page.setJavaScriptEnabled(true);

  assert.deepEqual(problems, []);
  console.log("browser-test: every page works");
} finally {
  await browser.close();
  children.forEach((child) => { child.removeAllListeners("exit"); child.kill("SIGINT"); });
}
