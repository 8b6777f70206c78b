// The meaning of a JSON Schema for one value: references resolved, null separated, and the kind of field.

const MOST_REFERENCES = 32;
const MOST_CHOICES = 10_000;
const BASE64 = /^base64(?:url)?$/;

/**
 * `schema` in the form that a form needs: `{schema, nullable}`, where the schema has no `$ref`, no `allOf` and no
 * null in addition to one other type. `root` contains local references. What can't be resolved becomes `{}`:
 * anything.
 */
export function plainSchema(schema, root) {
  const merged = mergeSchema(schema, root, 0);
  const list = merged.anyOf ?? merged.oneOf;
  if (Array.isArray(merged.type)) return withoutNullType(merged);
  if (!Array.isArray(list)) return { schema: merged, nullable: merged.nullable === true };
  const parts = list.slice(0, MOST_CHOICES).map((part) => mergeSchema(part, root, 0));
  const rest = parts.filter((part) => part.type !== "null" && part.const !== null);
  const { anyOf: _any, oneOf: _one, ...around } = merged;
  const nullable = rest.length < parts.length;
  if (rest.length === 1) {
    const inner = plainSchema(rest[0], root);
    return { schema: { ...inner.schema, ...around }, nullable: nullable || inner.nullable };
  }
  return { schema: { ...around, variants: rest }, nullable };
}

function withoutNullType(schema) {
  const types = schema.type.filter((type) => type !== "null");
  const nullable = types.length < schema.type.length;
  if (types.length === 1) return { schema: { ...schema, type: types[0] }, nullable };
  const { title: _title, description: _text, default: _given, type: _types, ...bounds } = schema;
  return { schema: { ...schema, type: undefined, variants: types.map((type) => ({ ...bounds, type })) }, nullable };
}

function mergeSchema(schema, root, depth) {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema) || depth > MOST_REFERENCES) return {};
  const { $ref: reference, allOf, ...own } = schema;
  let merged = {};
  if (typeof reference === "string") {
    const target = localSchema(reference, root);
    if (target === undefined) return { title: own.title, description: own.description };
    merged = mergeSchema(target, root, depth + 1);
  }
  for (const part of Array.isArray(allOf) ? allOf.slice(0, MOST_REFERENCES) : []) {
    merged = joinSchemas(merged, mergeSchema(part, root, depth + 1));
  }
  return joinSchemas(merged, own);
}

function joinSchemas(one, other) {
  const joined = { ...one, ...other };
  if (one.properties && other.properties) joined.properties = { ...one.properties, ...other.properties };
  if (one.required && other.required) joined.required = [...one.required, ...other.required];
  return joined;
}

function localSchema(reference, root) {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let at = root;
  for (const step of reference.split("/").slice(1, 50)) {
    const name = decodeStep(step);
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

function decodeStep(step) {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step;
  }
}

/** The kind of field for a simplified schema. */
export function schemaKind(schema) {
  if (schemaChoices(schema)) return "choice";
  if (schema.variants) return "union";
  const type = schema.type ?? guessedType(schema);
  if (type === "object") return objectKind(schema);
  if (type === "array") return schema.items || schema.prefixItems ? "list" : "json";
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean") return "boolean";
  if (type !== "string") return "json";
  if (isBase64(schema)) return "file";
  return schema.format === "date-time" ? "moment" : "text";
}

function guessedType(schema) {
  if (schema.properties) return "object";
  if (schema.items || schema.prefixItems) return "array";
  return ["minLength", "maxLength", "pattern", "format"].some((name) => name in schema) ? "string" : undefined;
}

function objectKind(schema) {
  if (schema.properties && Object.keys(schema.properties).length) return "object";
  if (isSchemaObject(schema.additionalProperties) || schema.patternProperties) return "map";
  return schema.additionalProperties === false ? "object" : "json";
}

/** Returns true if a schema is more than true or false. */
export function isSchemaObject(schema) {
  return typeof schema === "object" && schema !== null && Object.keys(schema).length > 0;
}

/** Returns true if a text is bytes in base64. */
export function isBase64(schema) {
  return BASE64.test(schema.contentEncoding ?? "") || BASE64.test(schema.format ?? "") || schema.format === "byte";
}

/** The choices, as `[{value, title}]`; null if a schema lists no values. */
export function schemaChoices(schema) {
  if ("const" in schema) return [{ value: schema.const, title: schema.title ?? choiceText(schema.const) }];
  if (Array.isArray(schema.enum)) {
    const titles = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum
      .map((value, at) => ({ value, title: titles[at] ?? choiceText(value) }))
      .filter(({ value }) => value !== null || schema.enum.length === 1)
      .slice(0, MOST_CHOICES);
  }
  const lists = schema.variants?.map((part) =>
    "const" in part || Array.isArray(part.enum) ? schemaChoices(part) : null,
  );
  return lists?.length && lists.every(Boolean) ? lists.flat().slice(0, MOST_CHOICES) : null;
}

/** A value as readable text. */
export function choiceText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns true if `value` may belong to `schema`, judging by its type and constants. */
export function fitsSchema(value, schema, root) {
  const { schema: plain, nullable } = plainSchema(schema, root);
  if (value === null) return nullable || plain.type === "null";
  const choices = schemaChoices(plain);
  if (choices) return choices.some((choice) => sameJson(choice.value, value));
  if (plain.variants) return plain.variants.some((part) => fitsSchema(value, part, root));
  const type = plain.type ?? guessedType(plain);
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type !== "object") return type === undefined || typeof value === type;
  if (typeof value !== "object" || Array.isArray(value)) return false;
  const needed = (plain.required ?? []).every((name) => Object.hasOwn(value, name));
  const isKnown = (name) => Object.hasOwn(plain.properties ?? {}, name) || plain.additionalProperties !== false;
  const constants = Object.entries(plain.properties ?? {}).filter(
    ([name, part]) => Object.hasOwn(value, name) && "const" in part,
  );
  return (
    needed &&
    Object.keys(value).every(isKnown) &&
    constants.every(([name, part]) => sameJson(part.const, value[name]))
  );
}

/** Returns true if two JSON values are equal; the order of names is irrelevant. */
export function sameJson(one, other) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]));
}
