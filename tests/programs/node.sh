# Worker threads, shared memory, child processes, a watched directory, signals.
node -e '
const { Worker } = require("worker_threads"), { spawn, execFile, fork, execFileSync } = require("child_process"), fs = require("fs"), os = require("os"), path = require("path");
const source = `const {parentPort, workerData} = require("worker_threads");
  const view = new Int32Array(workerData.shared);
  for (let i = 0; i < 100000; i++) Atomics.add(view, 0, 1);
  Atomics.add(view, 1, 1); Atomics.notify(view, 1);
  parentPort.on("message", m => { parentPort.postMessage(m * 2); parentPort.close(); });`;
(async () => {
  const shared = new SharedArrayBuffer(8), view = new Int32Array(shared);
  const workers = [...Array(4).keys()].map(() => new Worker(source, { eval: true, workerData: { shared } }));
  const answers = await Promise.all(workers.map((w, i) => new Promise((done, bad) => { w.on("message", done); w.on("error", bad); w.postMessage(i); })));
  console.log("workers", answers.join(), view[0], view[1]);
  const run = (p, input) => new Promise(done => { let out = ""; p.stdout.on("data", d => out += d); p.on("close", (code, signal) => done([out, code, signal])); if (input) p.stdin.end(input); });
  console.log(await run(spawn("sh", ["-c", "echo out; exit 3"])));
  console.log(await run(spawn("cat"), "x".repeat(200000)).then(([out, code]) => [out.length, code]));
  const sleeper = spawn("sleep", ["100"]); setTimeout(() => sleeper.kill(), 50);
  console.log(await run(sleeper));
  console.log(execFileSync("wc", ["-c"], { input: "12345" }).toString().trim());
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "n"));
  fs.writeFileSync(path.join(dir, "c.js"), "process.on(\"message\", m => { process.send(m.n + 1); process.disconnect(); })");
  const child = fork(path.join(dir, "c.js"));
  child.send({ n: 41 });
  console.log("fork", await new Promise(done => child.on("message", done)));
  await new Promise(done => child.on("exit", done));
  const seen = await new Promise(done => { const w = fs.watch(dir, (e, name) => { w.close(); done(name); }); fs.writeFileSync(path.join(dir, "w"), ""); });
  console.log("watch", seen);
  fs.rmSync(dir, { recursive: true });
  process.on("SIGUSR2", () => { console.log("signal"); process.kill(process.pid, "SIGTERM"); });
  setInterval(() => {}, 1000);
  process.kill(process.pid, "SIGUSR2");
})();'
echo $?
