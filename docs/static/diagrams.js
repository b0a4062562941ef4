// Diagrams are Mermaid's text in the page; where its script is there, they are drawn, in the page's colours.
addEventListener("DOMContentLoaded", () => {
  if (typeof mermaid === "undefined") return;
  const dark = document.body.dataset.theme === "dark" ||
    (document.body.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
  for (const block of document.querySelectorAll(".highlight-mermaid")) {
    const drawn = document.createElement("div");
    drawn.className = "mermaid";
    drawn.textContent = block.querySelector("pre").textContent; // without the button that copies it
    block.replaceWith(drawn);
  }
  mermaid.run();
});
