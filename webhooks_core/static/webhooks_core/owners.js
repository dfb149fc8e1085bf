"use strict";

// Shows what works with scripts alone.
const enable = (part) => {
  for (const button of part.querySelectorAll("button[data-copy][hidden]")) button.hidden = false;
};

const openParts = (part) => [...part.querySelectorAll("details[open][id]")].map((each) => each.id);

// Replaces an element by its newest version, with the title of its page, and keeps what its reader has opened.
const refresh = async (part) => {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const newest = page.getElementById(part.id);
  if (!newest || part.contains(document.activeElement)) return;
  const opened = openParts(part);
  document.title = page.title;
  part.replaceWith(newest);
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  enable(newest);
};

const watch = () => {
  const part = document.querySelector("[data-refresh]");
  if (!part) return;
  setTimeout(async () => {
    if (!document.hidden) await refresh(part).catch(() => {});
    watch();
  }, 1000 * part.dataset.refresh);
};

document.addEventListener("DOMContentLoaded", () => {
  enable(document);
  watch();
});
