// URI templates (RFC 6570): their variables and expansion.

const TEMPLATE_EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;
const TEMPLATE_OPERATORS = {
  "": { first: "", between: "," },
  "+": { first: "", between: ",", reserved: true },
  "#": { first: "#", between: ",", reserved: true },
  ".": { first: ".", between: "." },
  "/": { first: "/", between: "/" },
  ";": { first: ";", between: ";", named: true },
  "?": { first: "?", between: "&", named: true },
  "&": { first: "&", between: "&", named: true },
};

/** The variables of a template, each once: `{name, whole, optional}`; a `whole` query is a single text. */
export function templateVariables(template) {
  const found = new Map();
  for (const [, operator, list] of template.matchAll(TEMPLATE_EXPRESSION)) {
    for (const part of list.split(",")) {
      const { name, whole } = templateVariable(part);
      const optional = Boolean(TEMPLATE_OPERATORS[operator].named);
      if (!found.has(name)) found.set(name, { name, whole: whole && optional, optional });
    }
  }
  return [...found.values()];
}

/** The URI for a template with these values; empty ones are omitted. */
export function expandTemplate(template, values) {
  return template.replace(TEMPLATE_EXPRESSION, (_, operator, list) => {
    const form = TEMPLATE_OPERATORS[operator];
    const parts = list.split(",").flatMap((part) => {
      const { name, whole, most } = templateVariable(part);
      const value = values[name] ? [...values[name]].slice(0, most).join("") : "";
      if (!value) return [];
      // A query that consists of one variable is inserted as it is: `a=1&b=2`.
      if (form.named && whole) return [value];
      const text = form.reserved ? encodeURI(value).replace(/%25([0-9a-f]{2})/gi, "%$1") : encodeAll(value);
      return [form.named ? `${name}=${text}` : text];
    });
    return parts.length ? form.first + parts.join(form.between) : "";
  });
}

function templateVariable(part) {
  const [, name, prefix, star] = part.trim().match(/^(.*?)(?::(\d+))?(\*?)$/);
  return { name, whole: star === "*", most: prefix ? Number(prefix) : undefined };
}

function encodeAll(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}
