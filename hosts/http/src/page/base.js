/** An element with a class, a text and children. */
function make(tag, name, ...inside) {
  const it = document.createElement(tag);
  if (name) it.className = name;
  it.append(...inside);
  return it;
}

function say(it, text) {
  if (it.textContent !== text) it.textContent = text;
}

function look(it, name) {
  if (it.className !== name) it.className = name;
}

/** Shows a list: what stays keeps its element, so a selection and a transition go on. */
function show(parent, items, key, create, update, none) {
  const old = new Map([...parent.children].map((it) => [it.dataset.key, it]));
  const wanted = items.map((item) => {
    const name = key(item);
    let it = old.get(name);
    if (!it) {
      it = create(item);
      it.dataset.key = name;
    }
    update(it, item);
    return it;
  });
  if (!wanted.length && none) {
    const it = old.get("") || make("p", "none", none);
    it.dataset.key = "";
    wanted.push(it);
  }
  wanted.forEach((it, at) => {
    if (parent.children[at] !== it) parent.insertBefore(it, parent.children[at] || null);
  });
  while (parent.children.length > wanted.length) parent.lastChild.remove();
}
