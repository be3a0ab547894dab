// Python for the labs of a page, off its main thread. A message is a lab's name and what host.py is to do.

// Pyodide waits for ever for a file that does not come. So what fails to come is noticed here.
let fail;
const failed = new Promise((_, reject) => { fail = reject; });
const plainly = fetch;
self.fetch = async (...what) => {
  try {
    const response = await plainly(...what);
    if (!response.ok) throw new Error(`${response.url.split("/").at(-1)}: ${response.status}`);
    return response;
  } catch (error) {
    fail(error);
    throw error;
  }
};

const python = Promise.race([failed, begin()]);
python.catch(() => {}); // whoever asks is told

async function begin() {
  await WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // the smallest there is: where it is forbidden, say so
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const here = (name) => new URL(name, import.meta.url).href;
  const modules = fetch(here("course.zip")).then((response) => response.arrayBuffer());
  const [runtime, zip] = await Promise.all([loadPyodide({ indexURL: here("pyodide/") }), modules]);
  runtime.unpackArchive(zip, "zip");
  return runtime.runPython("from course_utils.stage.pages.host import answer; answer");
}

onmessage = async ({ data: { lab, message } }) => {
  try {
    const answer = (await python)(lab, JSON.stringify(message));
    postMessage({ lab, answer: JSON.parse(answer) });
  } catch (error) {
    postMessage({ lab, failure: String(error) });
  }
};
