// @ts-check
/** Words of the interface: look-up, placeholders, plurals, numbers and times. Pure. */

/** @typedef {string | Record<string, string>} Entry a text, or its plural forms */
/** @typedef {Record<string, Record<string, Entry>>} Catalog section → name → entry */

export class Words {
  /**
   * @param {string} locale BCP 47, such as `en` or `zh-Hans`
   * @param {Catalog} catalog
   * @param {string} [timeZone] the browser's when not given
   */
  constructor(locale, catalog, timeZone) {
    this.locale = locale;
    this.catalog = catalog;
    this.plural = new Intl.PluralRules(locale);
    this.number = new Intl.NumberFormat(locale);
    this.hour = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone });
    this.day = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long", timeZone });
    this.date = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric", timeZone });
  }

  /**
   * The text under `section.name`; `count` among the values chooses the plural form.
   * A key that does not exist shows itself, so that it is seen and fixed.
   * @param {string} key
   * @param {Record<string, string|number>} [values]
   * @returns {string}
   */
  t(key, values = {}) {
    const entry = this.find(key);
    if (entry === undefined) return key;
    const text = typeof entry === "string" ? entry : this.form(entry, Number(values.count));
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? this.shown(values[name]) : whole));
  }

  /** @param {string} key */
  has(key) {
    return this.find(key) !== undefined;
  }

  /** @param {number} ms since 1970 */
  time(ms) {
    return this.hour.format(ms);
  }

  /** A language by its name; what is no known tag stays as it is. @param {string} tag */
  language(tag) {
    try {
      return new Intl.DisplayNames(this.locale, { type: "language", fallback: "none" }).of(tag) ?? tag;
    } catch {
      return tag;
    }
  }

  /**
   * @param {string} key
   * @returns {Entry|undefined}
   */
  find(key) {
    const dot = key.indexOf(".");
    const section = this.catalog[key.slice(0, dot)] ?? {};
    const name = key.slice(dot + 1);
    return Object.hasOwn(section, name) ? section[name] : undefined;
  }

  /**
   * @param {Record<string, string>} forms
   * @param {number} count
   */
  form(forms, count) {
    return forms[this.plural.select(count)] ?? forms.other;
  }

  /** @param {string|number} value */
  shown(value) {
    return typeof value === "number" ? this.number.format(value) : value;
  }
}
