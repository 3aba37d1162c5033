// @ts-check
// The words of the widget in the customer's language, and dates as that language writes them. No DOM.

/** @typedef {Record<string, string | Record<string, string>>} Catalog */

export class Words {
  #catalogs;
  /** @type {string} */
  locale;

  /** @param {Record<string, Catalog>} catalogs  by language; "en" is complete @param {string} locale */
  constructor(catalogs, locale) {
    this.#catalogs = catalogs;
    this.locale = locale in catalogs ? locale : "en";
  }

  /** The BCP 47 tag for Intl and for the lang attribute. */
  get tag() {
    return this.locale === "zh" ? "zh-Hans" : this.locale;
  }

  /**
   * The sentence, with {names} filled in. `count` chooses the plural form.
   * @param {string} key @param {Record<string, string | number>} [values]
   */
  say(key, values = {}) {
    const found = this.#catalogs[this.locale][key] ?? this.#catalogs.en[key];
    if (found === undefined) throw new RangeError(`there are no words for ${key}`);
    const sentence = typeof found === "string" ? found : this.#plural(found, Number(values.count));
    return sentence.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
  }

  /** @param {number} at */
  time(at) {
    return new Intl.DateTimeFormat(this.tag, { hour: "numeric", minute: "2-digit" }).format(at);
  }

  /** Today, yesterday, or the date. @param {number} at @param {number} now */
  day(at, now) {
    const days = Math.round((midnight(now) - midnight(at)) / 86_400_000);
    if (days === 0 || days === 1) {
      const word = new Intl.RelativeTimeFormat(this.tag, { numeric: "auto" }).format(-days, "day");
      return word.charAt(0).toLocaleUpperCase(this.tag) + word.slice(1);
    }
    /** @type {Intl.DateTimeFormatOptions} */
    const form = { weekday: days < 7 ? "long" : undefined, day: "numeric", month: "long" };
    if (new Date(at).getFullYear() !== new Date(now).getFullYear()) form.year = "numeric";
    return new Intl.DateTimeFormat(this.tag, form).format(at);
  }

  /** The whole date. @param {number} at */
  date(at) {
    return new Intl.DateTimeFormat(this.tag, { dateStyle: "full" }).format(at);
  }

  /** Day and time, for what is to come. @param {number} at */
  moment(at) {
    return new Intl.DateTimeFormat(this.tag, { weekday: "long", hour: "numeric", minute: "2-digit" }).format(at);
  }

  /** @param {number} weekday  0 is Monday */
  weekday(weekday) {
    // 1 January 2024 was a Monday.
    return new Intl.DateTimeFormat(this.tag, { weekday: "short", timeZone: "UTC" }).format(Date.UTC(2024, 0, 1 + weekday));
  }

  /** @param {Record<string, string>} forms @param {number} count */
  #plural(forms, count) {
    return forms[new Intl.PluralRules(this.tag).select(count)] ?? forms.other;
  }
}

/** @param {number} at */
function midnight(at) {
  const date = new Date(at);
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
}
