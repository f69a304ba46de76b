// Small makers and changers of elements. Names of the log only ever become text nodes or attributes, never markup.

/** Make an element with attributes and children; strings become text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children);
  return made;
}

/** The element of an id. */
function byId(id) {
  return document.getElementById(id);
}

/** Set a text, if it is another one: what stays the same costs no layout. */
function write(part, text) {
  if (part.textContent !== text) part.textContent = text;
}

/** Set or take away an attribute, if it is another one. */
function mark(part, name, value) {
  if (value === null || value === undefined) part.removeAttribute(name);
  else if (part.getAttribute(name) !== String(value)) part.setAttribute(name, value);
}

const colours = new Map();

/** The value of a colour of page.css now: light and dark differ. */
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}
