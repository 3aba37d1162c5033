// @ts-check
// Runs before the first paint, so that a chosen theme does not flash in the other one.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("chatsvc.theme");
  } catch {
    // Storage is denied: the system's theme stands.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
