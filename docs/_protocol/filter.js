// Hides the rows of the index that lack one of the words in the box; keeps them in the address.
const box = document.getElementById("find"), count = document.getElementById("found");
const rows = [...document.querySelectorAll("tr[data-find]")];
const groups = [...document.querySelectorAll("section")];
function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !words.every(word => row.dataset.find.includes(word));
    shown += !row.hidden;
  }
  for (const group of groups) group.hidden = !group.querySelector("tr[data-find]:not([hidden])");
  count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  history.replaceState(null, "", box.value ? "#q=" + encodeURIComponent(box.value) : location.pathname);
}
if (location.hash.startsWith("#q=")) box.value = decodeURIComponent(location.hash.slice(3));
box.addEventListener("input", filter);
addEventListener("keydown", event => {
  if (event.key === "/" && event.target !== box) { event.preventDefault(); box.focus(); }
});
document.getElementById("search").hidden = false;
if (box.value) filter();
