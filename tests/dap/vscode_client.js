// Drives the adapter with the client that Visual Studio Code's own adapters are tested with; prints what it saw.
const { DebugClient } = require('@vscode/debugadapter-testsupport');
const [, , runtime, launcher, program, folder, file, line] = process.argv;

async function main() {
  const client = new DebugClient(runtime, launcher, 'neurontools');
  const seen = {};
  await client.start();
  client.defaultTimeout = 30000;
  const at = { path: file, line: Number(line) };
  await client.hitBreakpoint({ program, sourcePath: [folder], timing: false }, at);
  seen.threads = (await client.threadsRequest()).body.threads.map((one) => one.name);
  const thread = (await client.threadsRequest()).body.threads.find((one) => one.name === 'nc0 DVE').id;
  const stack = (await client.stackTraceRequest({ threadId: thread })).body.stackFrames;
  seen.frame = stack[0].name;
  const scopes = (await client.scopesRequest({ frameId: stack[0].id })).body.scopes;
  const locals = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body.variables;
  seen.k = locals.find((one) => one.name === 'k').value;
  const move = async (request, args) => {
    const stopped = client.waitForEvent('stopped', 30000);
    await request.call(client, args);
    return (await stopped).body;
  };
  seen.next = (await move(client.nextRequest, { threadId: thread })).reason;
  seen.back = (await move(client.stepBackRequest, { threadId: thread })).reason;
  seen.again = (await client.stackTraceRequest({ threadId: thread })).body.stackFrames[0].line;
  await client.setBreakpointsRequest({ source: { path: file }, breakpoints: [{ line: at.line, condition: 'k == 3' }] });
  seen.condition = (await move(client.continueRequest, { threadId: thread })).description;
  seen.value = (await client.evaluateRequest({ expression: 'max(t) - min(t)' })).body.result;
  seen.words = (await client.disassembleRequest({
    memoryReference: stack[0].instructionPointerReference, instructionCount: 2,
  })).body.instructions.map((one) => one.instruction.split(' ')[0]);
  seen.entry = (await move(client.reverseContinueRequest, { threadId: thread })).reason;
  await client.stop();
  console.log(JSON.stringify(seen));
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
