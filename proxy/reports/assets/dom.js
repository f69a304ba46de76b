// Small makers of elements. Text of a log only ever becomes a text node or an attribute, never markup.

/** Make an element with attributes and children; strings become text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') made.style.cssText = value; // as an attribute the page's policy would refuse it
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children);
  return made;
}

/** A section of the page with its heading and a sentence about it. */
function section(id, title, note, ...content) {
  const parts = [element('h2', {}, title)];
  if (note) parts.push(element('p', { class: 'note' }, note));
  return element('section', { id }, ...parts, ...content);
}

/** The value of a colour of page.css now: light, dark and print differ. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
