// Asks the labs under Pyodide, and prints each answer on a line. The arguments are the folder of the
// runtime, the archive of the course's modules, and a file with lines of [lab, message] in JSON.
const [folder, modules, asked] = process.argv.slice(2);
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const { readFileSync } = await import("node:fs");
const runtime = await loadPyodide({ indexURL: `${folder}/` });
runtime.unpackArchive(new Uint8Array(readFileSync(modules)), "zip");
const answer = runtime.runPython("from course_utils.stage.pages.host import answer; answer");
const lines = readFileSync(asked, "utf-8").split("\n").filter(Boolean);
for (const line of lines) {
  const [lab, message] = JSON.parse(line);
  console.log(answer(lab, JSON.stringify(message)));
}
