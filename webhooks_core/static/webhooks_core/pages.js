"use strict";

// Copies the text of the element that a button names: <button data-copy="its-id">.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  getSelection().selectAllChildren(source);
  // Outside https and localhost there is no clipboard: the selection is the next best.
  if (!navigator.clipboard) return;
  await navigator.clipboard.writeText(source.textContent);
  button.textContent = "Copied";
});

// A page that waits for an answer says so in an element with data-reload: seconds.
document.addEventListener("DOMContentLoaded", () => {
  const waiting = document.querySelector("[data-reload]");
  if (waiting) setTimeout(() => location.reload(), 1000 * waiting.dataset.reload);
});
