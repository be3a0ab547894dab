// Runs Python for the labs of a page, off its main thread. The first message has the translations of
// sentences, for a page in another language. Each one after it has a lab's place on the page, and the
// moves that host.py is to make in that lab.

// The smallest module of WebAssembly: only the format's magic number and version.
const EMPTY_MODULE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);

// Pyodide waits for ever for a file that does not come. So we watch here for a fetch that fails.
let fail;
const failed = new Promise((_, reject) => { fail = reject; });
const originalFetch = fetch;
self.fetch = async (...request) => {
  try {
    const response = await originalFetch(...request);
    if (!response.ok) throw new Error(`${response.url.split("/").at(-1)}: ${response.status}`);
    return response;
  } catch (error) {
    fail(error);
    throw error;
  }
};

const python = Promise.race([failed, begin()]);
python.catch(() => {}); // the answer to each message has the error

async function begin() {
  await WebAssembly.compile(EMPTY_MODULE); // raises a clear error where WebAssembly is forbidden
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const here = (name) => new URL(name, import.meta.url).href;
  const modules = fetch(here("course.zip")).then((response) => response.arrayBuffer());
  const loading = loadPyodide({ indexURL: here("pyodide/") });
  const [runtime, zip] = await Promise.all([loading, modules]);
  runtime.unpackArchive(zip, "zip");
  return runtime.pyimport("course_utils.stage.pages.host");
}

onmessage = async ({ data: { lab, message, translations } }) => {
  try {
    const host = await python;
    if (translations) {
      host.speak_in(JSON.stringify(translations));
      return;
    }
    const answer = host.answer(lab, JSON.stringify(message));
    postMessage({ lab, answer: JSON.parse(answer) });
  } catch (error) {
    if (lab) postMessage({ lab, failure: String(error) });
  }
};
