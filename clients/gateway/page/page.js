"use strict";

// A recording and a picture go into one chat message; what was heard and seen comes back first, then the answer.

const RATE_HZ = 16000;
const byId = (id) => document.getElementById(id);
const given = { audio: null, image: null };
let running = null; // AbortController of the question being answered
let recorder = null;

// ---- what is given ---------------------------------------------------------------------------------------------------

function setAudio(blob, name) {
  given.audio = blob;
  show("audio", blob, name, "No recording.");
  byId("audio").hidden = !blob;
}

function setImage(blob, name) {
  given.image = blob;
  show("image", blob, name, "No picture.");
  byId("picture").hidden = !blob;
  drawBoxes(null);
}

function show(kind, blob, name, none) {
  const element = byId(kind);
  if (element.src) URL.revokeObjectURL(element.src);
  if (blob) element.src = URL.createObjectURL(blob);
  else element.removeAttribute("src");
  byId(`${kind}-name`).textContent = blob ? name : none;
  byId(`drop-${kind}`).hidden = !blob;
}

function take(files) {
  for (const file of files) {
    if (file.type.startsWith("image/")) setImage(file, file.name);
    else if (file.type.startsWith("audio/") || file.type.startsWith("video/")) setAudio(file, file.name);
    else tell(`${file.name} is neither a recording nor a picture.`);
  }
}

async function toggleRecording() {
  if (recorder) {
    recorder.stop();
    return;
  }
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const parts = [];
    recorder = new MediaRecorder(stream);
    recorder.ondataavailable = (event) => parts.push(event.data);
    recorder.onstop = () => {
      stream.getTracks().forEach((track) => track.stop());
      setAudio(new Blob(parts, { type: recorder.mimeType }), "Your recording");
      recorder = null;
      showRecording(false);
      status("Recorded.");
    };
    recorder.start();
    showRecording(true);
    status("Recording. Press the button again to end it.");
  } catch (error) {
    recorder = null;
    tell(`The microphone can't be used: ${error.message}`);
  }
}

function showRecording(isOn) {
  byId("record").setAttribute("aria-pressed", String(isOn));
  byId("record").textContent = isOn ? "Stop recording" : "Record";
}

// ---- what is sent ----------------------------------------------------------------------------------------------------

async function messageParts() {
  const parts = [{ type: "text", text: byId("question").value.trim() }];
  if (given.image) parts.push({ type: "image_url", image_url: { url: await dataUrl(given.image) } });
  if (given.audio) {
    const data = (await dataUrl(await asWav(given.audio))).split(",", 2)[1];
    parts.push({ type: "input_audio", input_audio: { data, format: "wav" } });
  }
  return parts;
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.replace(/^data:[^,]*,/, `data:${blob.type.split(";")[0]};base64,`));
    reader.onerror = () => reject(new Error(`The file can't be read: ${reader.error.message}`));
    reader.readAsDataURL(blob);
  });
}

// What the browser can play becomes what the service can hear: mono, 16 kHz, 16 bits.
async function asWav(blob) {
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE_HZ).decodeAudioData(await blob.arrayBuffer());
  } catch {
    throw new Error("This browser can't play that recording.");
  }
  const samples = new Float32Array(sound.length);
  for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
    sound.getChannelData(channel).forEach((value, at) => { samples[at] += value / sound.numberOfChannels; });
  }
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const write = (at, text) => [...text].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, 2 * RATE_HZ, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((value, at) => view.setInt16(44 + 2 * at, Math.max(-1, Math.min(1, value)) * 32767, true));
  return new Blob([view.buffer], { type: "audio/wav" });
}

// ---- asking ----------------------------------------------------------------------------------------------------------

async function ask() {
  stop();
  const controller = new AbortController();
  running = controller;
  begin();
  try {
    const content = await messageParts();
    if (!content[0].text && content.length === 1) throw new Error("Give a recording or a picture, or write a question.");
    status("Listening and looking …");
    const headers = { "Content-Type": "application/json" };
    if (byId("key").value) headers.Authorization = `Bearer ${byId("key").value}`;
    const body = JSON.stringify({ model: "assistant", stream: true, messages: [{ role: "user", content }] });
    const response = await fetch("v1/chat/completions", { method: "POST", headers, body, signal: controller.signal });
    if (!response.ok) throw await refusal(response);
    for await (const chunk of events(response.body)) read(chunk);
    status("Done.");
  } catch (error) {
    if (controller.signal.aborted) status("Stopped.");
    else tell(error.message);
  } finally {
    if (running === controller) end();
  }
}

async function refusal(response) {
  if (response.status === 401) byId("key-box").open = true;
  const found = await response.json().catch(() => null);
  return new Error(found?.error?.message ?? `The service answered ${response.status}.`);
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.replace(/^data: /, "");
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

function read(chunk) {
  if (chunk.error) throw new Error(chunk.error.message);
  const noticed = chunk.tritonkit ?? {};
  if (noticed.transcript !== undefined) showRow("heard", noticed.transcript.trim() || "nothing");
  if (noticed.detections) {
    showRow("seen", inWords(noticed.detections.detections));
    drawBoxes(noticed.detections);
  }
  const text = chunk.choices[0]?.delta.content;
  if (text) {
    status("Answering …");
    byId("text").append(text);
  }
}

function showRow(name, text) {
  byId(name).textContent = text;
  byId(`${name}-row`).hidden = false;
}

function inWords(found) {
  return found.map((one) => `${one.label} (${Math.round(100 * one.score)} %)`).join(", ") || "nothing it knows";
}

function drawBoxes(seen) {
  const svg = byId("boxes");
  svg.replaceChildren();
  byId("image").alt = seen ? `The picture that was given, with ${inWords(seen.detections)}` : "The picture that was given";
  if (!seen) return;
  svg.setAttribute("viewBox", `0 0 ${seen.width} ${seen.height}`);
  const size = Math.max(seen.width, seen.height) / 20;
  for (const one of seen.detections) {
    const [left, top, right, bottom] = one.box;
    svg.append(shape("rect", { x: left, y: top, width: right - left, height: bottom - top }));
    const label = shape("text", { x: left + size / 4, y: top + size, "font-size": size, "stroke-width": size / 6 });
    label.textContent = one.label;
    svg.append(label);
  }
}

function shape(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
}

// ---- how it stands ---------------------------------------------------------------------------------------------------

function begin() {
  byId("problem").hidden = true;
  byId("heard-row").hidden = true;
  byId("seen-row").hidden = true;
  byId("text").textContent = "";
  // Told once, when it is whole, not word by word.
  byId("text").setAttribute("aria-busy", "true");
  byId("stop").disabled = false;
  drawBoxes(null);
}

function end() {
  running = null;
  byId("stop").disabled = true;
  byId("text").setAttribute("aria-busy", "false");
}

function stop() {
  if (running) running.abort();
}

function status(text) {
  if (byId("status").textContent !== text) byId("status").textContent = text;
}

function tell(message) {
  status("");
  byId("problem").textContent = message;
  byId("problem").hidden = false;
}

// ---- wiring ----------------------------------------------------------------------------------------------------------

byId("form").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
byId("stop").addEventListener("click", stop);
byId("record").addEventListener("click", toggleRecording);
byId("drop-audio").addEventListener("click", () => { setAudio(null); byId("record").focus(); });
byId("drop-image").addEventListener("click", () => { setImage(null); byId("image-file").focus(); });
for (const id of ["audio-file", "image-file"]) {
  byId(id).addEventListener("change", (event) => { take(event.target.files); event.target.value = ""; });
}
byId("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
document.addEventListener("dragleave", () => document.body.classList.remove("dragging"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  take(event.dataTransfer.files);
});
document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) take(event.clipboardData.files); });
