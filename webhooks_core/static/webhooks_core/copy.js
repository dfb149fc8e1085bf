// Copies the text of the element that a button names: <button data-copy="its-id">.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const range = document.createRange();
  range.selectNodeContents(source);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  // Outside https and localhost there is no clipboard: the selection is the next best.
  if (!navigator.clipboard) return;
  await navigator.clipboard.writeText(source.textContent);
  button.textContent = "Copied";
});
