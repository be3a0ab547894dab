// The sentences of the pages' scripts in the language of the page: whole templates with named gaps,
// as core/say/language.py has them. `make translations` finds them by the calls of `translated` and
// `template`, whose first argument is a text as it is.

const { lang } = document.documentElement;
export const translations = lang === "en" ? {} : await fetched();

// By the English, as the page's build has written them. Without them, sentences stay English.
async function fetched() {
  const name = `sentences.${lang.replace("-", "_")}.json`;
  try {
    const response = await fetch(new URL(name, import.meta.url));
    return response.ok ? await response.json() : {};
  } catch {
    return {};
  }
}

// The sentence in the page's language, with the gaps filled in.
export function translated(english, gaps = {}) {
  const sentence = translations[english] ?? english;
  return sentence.replace(/\{(\w+)\}/g, (gap, name) => gaps[name] ?? gap);
}

// Marks a sentence that is kept, as a constant is, and translated later.
export const template = (english) => english;
