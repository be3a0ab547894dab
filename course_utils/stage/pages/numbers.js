// Reads a number that somebody types, and writes numbers, as the course does in Python: see
// core/say/typed.py, answer_units.py and refusals.py, whose tables these are, and wording.py.
import tables from "./tables.js";
import { template, translated } from "./words.js";

const TERM = new RegExp(tables.term);
const IN_OTHER_BASE = /^\s*(0x[\da-f]+|0b[01]+)\s*$/i;
const IN_NO_BASE = /^\s*[-+−]?0[xb]/i; // -0x1 is not 0 times 1
const OF_HOW_MANY = /^of ([\d,]+)$/;
const WORKED_OUT = new RegExp(tables.workedOut);
const THOUSAND = new RegExp(tables.thousand.replaceAll("\\d", "\\p{Nd}"), "u");
const EACH_SECOND = new RegExp(tables.eachSecond, "i");
const RANGE = new RegExp(`^${tables.range}$`, "s");
const NUMBER_THEN_WORDS = /^(.*\p{Nd}[.,]?)\s*(\P{Nd}+)$/su;
const WORDS_THEN_NUMBER = /^(\P{Nd}+)(\p{Nd}.*)$/su;
const PREFIXES = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
// What one of a unit is in the unit that has prefixes.
const SCALED = {
  bytes: [1, "B"],
  GB: [1e9, "B"],
  FLOPs: [1, "FLOPs"],
  "FLOP/s": [1, "FLOP/s"],
  "TFLOP/s": [1e12, "FLOP/s"],
};
const LARGE = [
  [1e6, template("{number} million")],
  [1e9, template("{number} billion")],
  [1e12, template("{number} trillion")],
];

// The number that the text means as an answer in that unit. If it means none, an Error has sentences
// for the reader.
export function read(text, unit) {
  const number = numberIn(text, unit);
  const fault = Number.isFinite(number)
    ? outOfBounds(number, unit)
    : noNumber(text.trim(), unit, Math.abs(number) === Infinity);
  if (fault) throw new Error(inARow(fault, how(unit)));
  return number;
}

const isNumber = (text, unit) => Number.isFinite(numberIn(text, unit));
const inARow = (text, sentence) => translated("{text} {sentence}", { text, sentence });

// The number in the text, before it is known to fit the unit; NaN if there is none.
function numberIn(text, unit) {
  const inOtherBase = IN_OTHER_BASE.exec(text.slice(0, tables.longest));
  if (inOtherBase) return Number(inOtherBase[1].toLowerCase());
  let plain = text.replaceAll(tables.measureWord, " ");
  while (plain && tables.about.includes(plain[0])) plain = plain.slice(1);
  for (const [fraction, words] of Object.entries(tables.fractions)) {
    plain = plain.replaceAll(fraction, words);
  }
  const isRate = unit.endsWith(tables.aSecond);
  // Of "300 tok/s", as an answer in tokens a second, 300 tok is left, as one in tokens.
  const amount = isRate ? plain.replace(EACH_SECOND, "") : plain;
  const of = isRate ? unit.slice(0, -tables.aSecond.length) : unit;
  const [inUnit, size] = inItsUnit(amount, of);
  const value = sum(inAscii(inUnit, of));
  // With 15 digits, 3 亿 is 0.3 billion; 3 * 0.1 alone is a little more.
  return size === 1 ? value : Number((value * size).toPrecision(15));
}

// How many there are in all, such as 200 for "of 200"; 0 for a unit of another kind.
function wholeIn(unit) {
  const several = OF_HOW_MANY.exec(unit);
  return several ? Number(several[1].replaceAll(",", "")) : 0;
}

// How an answer in that unit can be written.
function how(unit) {
  const most = wholeIn(unit);
  if (most) return translated(tables.howMany, { most: numberText(most) });
  return translated(tables.how[firstWord(unit)] ?? tables.how[""]);
}

// What is wrong with a number that this unit cannot have; empty if it can have it.
function outOfBounds(n, unit) {
  if (unit && n < 0) return translated("It cannot be below 0: {number}.", { number: withUnit(n, unit) });
  if (unit === "share" && n > 1) {
    return translated("A share is between 0 and 1; with a % sign, between 0 % and 100 %.");
  }
  const most = wholeIn(unit);
  const number = numberText(n);
  const isCounted = most || tables.whole.includes(unit);
  if (isCounted && !Number.isInteger(n)) return translated("{number} is not a whole number.", { number });
  if (most && n > most) return translated("{number} is more than there are.", { number });
  return "";
}

// What is wrong with a text that is no number.
function noNumber(text, unit, isTooLarge) {
  if (!text) return translated("Type a number.");
  const typed = quoted(text);
  if (text.length > tables.longest) {
    const gaps = { typed, most: tables.longest };
    return translated("{typed} is too long: only {most} characters are read.", gaps);
  }
  if (isTooLarge) return translated("{typed} is too large.", { typed });
  const ends = RANGE.exec(text);
  if (ends && isNumber(ends[1], unit) && isNumber(ends[2], unit)) {
    return translated("{typed} is two numbers, and the answer is one.", { typed });
  }
  const after = NUMBER_THEN_WORDS.exec(text);
  if (after && /[%\p{L}]/u.test(after[2]) && isNumber(after[1], unit)) {
    const letters = after[2].trim();
    return cutShort(after[1], letters, unit) || wrongUnit(quoted(letters), unit);
  }
  const before = WORDS_THEN_NUMBER.exec(text);
  if (before && isNumber(before[2], unit)) {
    const words = quoted(before[1].trim());
    return translated("Leave out {words}, and type the number alone.", { words });
  }
  return translated("{typed} is not a number here.", { typed });
}

// What is said of a unit of bytes without its B, as in 44 G; empty for other letters.
function cutShort(number, letters, unit) {
  if (!tables.otherUnits[firstWord(unit)]?.[`${letters}b`.toLowerCase()]) return "";
  const capitalized = letters[0].toUpperCase() + letters.slice(1).toLowerCase();
  const prefix = capitalized === "K" ? "k" : capitalized; // but KiB
  const gaps = { words: quoted(letters), meant: `${number.trim()} ${prefix}B` };
  return translated("{words} is no unit here. Do you mean {meant}?", gaps);
}

// What is said of a unit that was typed, and that does not lead to the one asked for.
function wrongUnit(words, unit) {
  if (!unit) {
    return translated("{words} does not fit here, because the answer is a number without a unit.", {
      words,
    });
  }
  if (unit === "share") {
    return translated("{words} does not fit here, because the answer is a share.", { words });
  }
  if (wholeIn(unit)) {
    return translated("{words} does not fit here, because the answer is a count.", { words });
  }
  return translated("{words} does not fit here, because the answer is in {unit}.", { words, unit });
}

// The text, or its beginning, in quotes; in English, as Python's repr has them.
function quoted(text) {
  const isLong = text.length > tables.shown;
  const typed = isLong ? `${text.slice(0, tables.shown).trimEnd()}…` : text;
  return typed.includes("'") && !typed.includes('"')
    ? translated('"{typed}"', { typed })
    : translated("'{typed}'", { typed });
}

// The number without a unit other than the one asked for, and the factor between the two.
function inItsUnit(text, unit) {
  const asked = firstWord(unit);
  const trimmed = text.trim();
  for (const percent of tables.inPercent.includes(asked) ? tables.percent : []) {
    if (trimmed.toLowerCase().endsWith(percent)) return [trimmed.slice(0, -percent.length), 1 / 100];
  }
  // As in "10 years": 10 and year, without the s of the plural. As in 10 年: 10 and 年.
  const short = text.toLowerCase().slice(0, tables.longest);
  const found = /^\s*(.*\p{Nd})\s*([a-z\u4e00-\u9fff]+?)s?\s*$/u.exec(short);
  const size = found && tables.otherUnits[asked]?.[found[2]];
  return size ? [found[1], size] : [text, 1];
}

// The text in lower case, without its unit, with ASCII digits, and with one sign per operation.
function inAscii(text, unit) {
  if (text.length > tables.longest || IN_NO_BASE.test(text)) return "";
  // A raised number is a power: 10⁻³ becomes 10^⁻³.
  let ascii = text.toLowerCase().trim().replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+/g, "^$&");
  const first = firstWord(unit);
  const endings = [unit.toLowerCase(), first, first.replace(/s$/, "")];
  for (const ending of [...endings, ...(tables.endings[first] ?? [])]) {
    if (ending && ascii.endsWith(ending)) ascii = ascii.slice(0, -ending.length);
  }
  ascii = withoutFactors(ascii, unit.toLowerCase());
  // Of bytes, k is a kB cut short.
  if (!tables.otherUnits[first]?.kb) ascii = ascii.replace(THOUSAND, "*1e3");
  ascii = ascii.replace(/\p{Nd}/gu, asciiDigit);
  ascii = Array.from(ascii, (sign) => tables.signs[sign] ?? sign).join("");
  for (const [words, sign] of Object.entries(tables.operations)) {
    ascii = ascii.replaceAll(words, sign);
  }
  return ascii;
}

// The text without the factors of its unit: in "times s · h", "16 sh" is 16.
function withoutFactors(text, unit) {
  if (!unit.startsWith(tables.times)) return text;
  const factors = unit.slice(tables.times.length).match(/[\p{L}\p{N}_]+/gu) ?? [];
  const { between } = tables;
  return text.replace(new RegExp(`${between}${factors.join(between)}\\s*$`), "");
}

const firstWord = (unit) => unit.toLowerCase().split(" ")[0];

// The digits of each script are ten characters in a row, or several times ten.
function asciiDigit(digit) {
  const code = digit.codePointAt(0);
  let first = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first -= 1;
  return String((code - first) % 10);
}

// The value of a product, or of several with + between them; NaN if one is none. For 3x + 4x, which
// without its last x is 3 * + 4, it is NaN, too.
function sum(text) {
  if (/[*/]\s*\+/.test(text)) return NaN;
  return text.split(/(?<=[\d.,])\s*\+/).reduce((total, part) => total + product(part), 0);
}

// The value of a number, or of several with * and / between them; NaN if one is none.
function product(text) {
  const [first, ...more] = text.split(/([*/])/);
  let value = term(first);
  for (let at = 0; at < more.length; at += 2) {
    const next = term(more[at + 1]);
    value = more[at] === "*" ? value * next : value / next;
  }
  return value;
}

// The value of one number with its sign, perhaps with an exponent or a power, such as 2^10.
function term(text) {
  const found = TERM.exec(text);
  if (!found) return NaN;
  const [, sign, digits, exponent = "0", power] = found;
  const base = Number(`${decimal(digits)}e${exponent}`);
  const size = power ? base ** Number(power) : base;
  return sign === "-" ? -size : size;
}

// The digits as JavaScript reads them: without separators of thousands, and with a decimal point.
function decimal(digits) {
  for (const [form, separator] of tables.forms) {
    if (new RegExp(`^(?:${form})$`).test(digits)) {
      return digits.replace(new RegExp(separator, "g"), "").replace(",", ".");
    }
  }
  return "no number";
}

// A whole number in full, with separators; any other number with six significant digits.
export function numberText(n) {
  const isWhole = Number.isInteger(n) && Math.abs(n) < tables.largestWhole;
  return isWhole ? n.toLocaleString("en") : rounded(n, 6);
}

// The number with three digits; a whole number in full, up to a million billions.
export function threeDigits(n) {
  const isLarge = Math.abs(n) >= 99.95 && Math.abs(n) < 1e15;
  return isLarge ? Math.round(n).toLocaleString("en") : rounded(n, 3);
}

// A factor as a person would say it: 2.76 billion, and a small whole one in full.
export function factorText(factor) {
  if (factor < 10000 && Number.isInteger(factor)) return forPeople(factor);
  const short = Number(factor.toPrecision(3));
  const large = LARGE.find(([size]) => short >= size && short < 1000 * size);
  if (!large) return forPeople(short);
  return translated(large[1], { number: threeDigits(short / large[0]) });
}

// The number with so many digits. A very large or small one has an exponent, as Python writes it.
function rounded(n, digits) {
  const short = Number(n.toPrecision(digits));
  const size = Math.abs(short);
  if (size === 0 || (size >= 1e-4 && size < 10 ** digits)) return String(short);
  return short.toExponential().replace(/e([-+])(\d)$/, "e$10$2");
}

// A guess as it could have been said, with its unit: 2.4 GB.
export function withUnit(n, unit) {
  const behind = { share: "", percent: "%" }[unit] ?? unit;
  return `${numberText(n)} ${behind}`.trim();
}

// How a guess was understood: as engine/guessing/field.py says it, whose bound this is.
export function asRead(n, unit, typed = "") {
  const isLong = Number.isFinite(n) && !Number.isInteger(n) && Number(n.toPrecision(6)) !== n;
  if (isLong && WORKED_OUT.test(typed)) return withUnit(Number(n.toPrecision(3)), unit);
  if (unit === "bytes" && n >= tables.inFullBelow) return inWords(n, unit);
  return withUnit(unit === "days" && n >= 1000 ? Number(n.toPrecision(4)) : n, unit);
}

// A number as a person would say it, with three digits and the unit that fits its size.
export function inWords(n, unit) {
  if (unit in SCALED && Math.abs(n) < 1e27) return withPrefix(n, unit);
  if (unit === "share") return `${forPeople(100 * n)} %`;
  if (unit === "percent") return `${forPeople(n)} %`;
  const plural = unit.replace(/^billions of/, "billion");
  const isOne = n === 1 && !unit.includes(" ");
  return `${forPeople(n)} ${isOne ? plural.replace(/s$/, "") : plural}`.trim();
}

// The number in the unit's base, such as bytes, with the prefix that leaves one to three digits.
function withPrefix(n, unit) {
  const [size, of] = SCALED[unit];
  let scaled = n * size;
  if (of === "B" && Math.abs(scaled) < 1000) return `${threeDigits(scaled)} ${scaled === 1 ? "byte" : "bytes"}`;
  let power = 0;
  while (Math.abs(scaled) >= 999.5 && power < PREFIXES.length - 1) {
    power += 1;
    scaled /= 1000;
  }
  return `${threeDigits(scaled)} ${PREFIXES[power]}${of}`;
}

// The number in full if it is whole and below a billion; else with three digits, perhaps × 10^n.
function forPeople(n) {
  const size = Math.abs(n);
  if (n === 0 || (size < 1e9 && Number.isInteger(n))) return n.toLocaleString("en");
  if (size >= 1e-4 && size < 1e9) return threeDigits(n);
  const [mantissa, power] = n.toExponential(2).split("e");
  const times = Number(mantissa) === 1 ? "" : `${Number(mantissa)} × `;
  return `${times}10^${Number(power)}`;
}
