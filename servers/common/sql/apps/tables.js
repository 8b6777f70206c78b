// The tables of a database as the server describes them, validated and linked.

const MOST_TABLES = 2_000;
const MOST_COLUMNS_READ = 5_000;

/**
 * The tables in `_meta.view` of `describe_database`: `{database, more, tables: [{name, kind, rows, columns, keys,
 * links}]}`. `keys` contains the names of columns that refer to other tables; `to` of a link is the index of such a
 * table. Null if it has another form.
 */
export function readTables(view) {
  if (!Array.isArray(view?.tables)) {
    return null;
  }
  const given = view.tables.filter((table) => typeof table?.name === "string");
  const tables = given.slice(0, MOST_TABLES).map(readTable);
  const byName = new Map(tables.map((table, index) => [table.name.toLowerCase(), index]));
  for (const link of tables.flatMap((table) => table.links)) {
    link.to = byName.get(link.table.toLowerCase()) ?? null;
    // A key that names no columns of the other table refers to its primary key.
    if (link.to !== null && link.toColumns.length === 0) {
      link.toColumns = primaryKey(tables[link.to]);
    }
  }
  const database = typeof view.database === "string" ? view.database : null;
  return { database, tables, more: view.more === true || given.length > tables.length };
}

function readTable({ name, kind, rows, columns, foreign_keys: foreign }) {
  const links = listOf(foreign, (key) => typeof key?.table === "string").map((key) => ({
    table: key.table,
    columns: listOf(key.columns, isText),
    toColumns: listOf(key.to, isText),
    to: null,
  }));
  return {
    name,
    kind: kind === "view" ? "view" : "table",
    rows: Number.isFinite(rows) ? rows : null,
    columns: listOf(columns, (column) => isText(column?.name)).slice(0, MOST_COLUMNS_READ),
    keys: new Set(links.flatMap((link) => link.columns)),
    links,
  };
}

function primaryKey({ columns }) {
  const keyed = columns.filter((column) => column.primary_key);
  return keyed.sort((one, other) => one.primary_key - other.primary_key).map((column) => column.name);
}

/**
 * The columns of a table, completed by those of a query for all columns, `{columns, declared}`: a description may
 * have had no room for some of them.
 */
export function completeColumns(described, { columns, declared }) {
  const known = new Set(described.map((column) => column.name));
  const others = columns.map((name, at) => ({ name, type: declared?.[at] ?? "" }));
  return described.concat(others.filter(({ name }) => isText(name) && !known.has(name)).slice(0, MOST_COLUMNS_READ));
}

function listOf(value, accepts) {
  return Array.isArray(value) ? value.filter(accepts) : [];
}

function isText(value) {
  return typeof value === "string";
}
