// Runs Perfetto's trace processor, the WebAssembly of its viewer, under node: a file of requests in, a file of replies out.
//
//     node trace_processor.js FOLDER REQUESTS REPLIES
//
// FOLDER has engine_bundle.js, a worker's script, and trace_processor.wasm; what such a script expects of a browser is here.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, requests, replies] = process.argv.slice(2);
const node = process;
const file = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: "file:///worker/engine_bundle.js" };
globalThis.fetch = async (url) => new Response(file(url), { headers: { "content-type": "application/wasm" } });
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() {
    const data = file(this.url);
    this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    this.status = 200;
  }
};
delete globalThis.process;
const bundle = file("engine_bundle.js").toString();
const input = new Uint8Array(fs.readFileSync(requests));
vm.runInThisContext(bundle);

const made = [];
const port = { postMessage: (data) => made.push(Buffer.from(data)) };
// The script says nothing when it is ready to work; its requests before that fail.
const attempt = (left) => {
  try {
    port.onmessage({ data: input });
  } catch (error) {
    if (!left) throw error;
    setTimeout(attempt, 200, left - 1);
    return;
  }
  setTimeout(() => { fs.writeFileSync(replies, Buffer.concat(made)); node.exit(0); }, 200);
};
self.onmessage({ data: port });
setTimeout(attempt, 1000, 20);
