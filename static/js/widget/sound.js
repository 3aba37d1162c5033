// @ts-check
// Two soft notes for a message that came while nobody looked. Made, not loaded.

/** @type {AudioContext | null} */
let context = null;

export function chime() {
  context ??= new AudioContext();
  // Before the first gesture the browser keeps it silent; that is its right.
  if (context.state === "suspended") void context.resume();
  [660, 880].forEach((frequency, index) => note(/** @type {AudioContext} */ (context), frequency, index * 0.12));
}

/** @param {AudioContext} audio @param {number} frequency @param {number} after_s */
function note(audio, frequency, after_s) {
  const start = audio.currentTime + after_s;
  const tone = new OscillatorNode(audio, { frequency, type: "sine" });
  const volume = new GainNode(audio, { gain: 0 });
  volume.gain.setValueAtTime(0, start);
  volume.gain.linearRampToValueAtTime(0.08, start + 0.015);
  volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.35);
  tone.connect(volume).connect(audio.destination);
  tone.start(start);
  tone.stop(start + 0.4);
}
