// Plays the memory of a step. It can be paused, and the slider leads to any moment. Where the reader
// wants less motion, it stands still until they play it.
const STEP_MS = 9_000; // to play a whole step
const REST_MS = 2_500; // before it begins again

for (const figure of document.querySelectorAll(".motion")) play(figure);

function play(figure) {
  const { gb, runs } = JSON.parse(figure.dataset.moments);
  const part = (selector) => figure.querySelector(selector);
  const [ahead, now, button, slider] = [".ahead", ".now", "button", "input"].map(part);
  const words = { pause: button.textContent, play: button.dataset.play ?? "Play" };
  const width = part("svg").viewBox.baseVal.width;
  const peakX = part(".peak circle").cx.baseVal.value;
  let isPlaying = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let playedMs = 0;
  let lastMs = null; // when the frame before was drawn

  // Shows the step up to that share of its time.
  function show(share) {
    const x = width * share;
    ahead.setAttribute("x", x);
    ahead.setAttribute("width", width - x);
    now.setAttribute("x1", x);
    now.setAttribute("x2", x);
    part(".peak").classList.toggle("seen", x >= peakX);
    const column = Math.min(gb.length - 1, Math.floor(share * gb.length));
    slider.value = column;
    const where = runs.findLast(([first]) => first <= column)[1];
    part(".gb").textContent = `${gb[column]} GB`;
    part(".where").textContent = where;
    slider.setAttribute("aria-valuetext", `${gb[column]} GB, ${where}`);
  }

  function frame(nowMs) {
    if (!isPlaying) return;
    if (lastMs !== null) playedMs += Math.min(100, nowMs - lastMs); // not all that a hidden tab misses
    lastMs = nowMs;
    if (playedMs > STEP_MS + REST_MS) playedMs = 0;
    show(Math.min(1, playedMs / STEP_MS));
    requestAnimationFrame(frame);
  }

  function setPlaying(on) {
    isPlaying = on;
    button.textContent = on ? words.pause : words.play;
    lastMs = null;
    if (on) requestAnimationFrame(frame);
  }

  button.addEventListener("click", () => {
    if (!isPlaying && playedMs >= STEP_MS) playedMs = 0;
    setPlaying(!isPlaying);
  });
  slider.addEventListener("input", () => {
    setPlaying(false);
    playedMs = (STEP_MS * (Number(slider.value) + 0.5)) / gb.length;
    show(playedMs / STEP_MS);
  });
  part(".player").hidden = false;
  if (!isPlaying) playedMs = STEP_MS;
  show(Math.min(1, playedMs / STEP_MS));
  setPlaying(isPlaying);
}
