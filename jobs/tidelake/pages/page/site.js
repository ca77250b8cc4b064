"use strict";

// The age of every time with data-since, such as "3 h 12 min ago".
function age(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min ago` : `${Math.floor(hours / 24)} days ago`;
}

function showAges() {
  for (const time of document.querySelectorAll("time[data-since]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    if (seconds < 0) continue;
    let shown = time.nextElementSibling;
    if (!shown || shown.className !== "ago") {
      shown = document.createElement("span");
      shown.className = "ago";
      time.after(shown);
    }
    shown.textContent = ` (${age(seconds)})`;
  }
}

// A field that hides the rows and names that do not hold its words.
function addFilter(form) {
  const field = form.querySelector("input");
  const status = form.querySelector("[role=status]");
  const entries = form.dataset.filter.split(" ").flatMap((id) => [...(document.getElementById(id)?.querySelectorAll("[data-words]") ?? [])]);
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const entry of entries) {
      const text = entry.dataset.words.toLowerCase();
      entry.hidden = !words.every((word) => text.includes(word));
      left += entry.hidden ? 0 : 1;
    }
    status.textContent = words.length ? `${left} of ${entries.length} shown` : "";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", apply);
  apply();
}

// A button that copies a snippet.
function addCopy(snippet) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copying";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${snippet.getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    const text = snippet.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(snippet);
      button.textContent = "Selected";
    }
  });
  snippet.before(button);
}

showAges();
setInterval(showAges, 30000);
document.querySelectorAll("form[data-filter]").forEach(addFilter);
document.querySelectorAll("pre.copy").forEach(addCopy);
