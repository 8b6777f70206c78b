"""Statements grouped by their effect: reads, changes, and those that no tool may run.

`{folder}` is replaced by a directory of the test. Statements that are hostile by size or time are in the tests of
`read_query`, hostile files in `malicious.py`.
"""

__all__ = ["CHANGES", "EXTRA", "NEVER", "READS", "TEMPORARY"]

READS = (
    "SELECT * FROM numbers",
    "WITH some AS (SELECT n FROM numbers) SELECT count(*) FROM some",
    "VALUES (1), (2)",
    "EXPLAIN SELECT 1",
    "EXPLAIN QUERY PLAN SELECT * FROM numbers",
    "PRAGMA table_info(numbers)",
    "PRAGMA user_version",
    "PRAGMA Table_Info(numbers)",
    "SELECT name FROM pragma_table_info('numbers')",
    "SELECT value FROM json_each('[1, 2]')",
    "SELECT * FROM words WHERE words MATCH 'one'",
    "SELECT * FROM names",
    "SELECT * FROM place",
    "/* a comment */ SELECT 1",
    "-- how many?\nSELECT 2;",
    " ;SELECT 2 -- two",
    "SELECT 2 WHERE 'DELETE; DROP TABLE' <> ''",
    "\ufeffSELECT 1",
)
CHANGES = (
    "INSERT INTO numbers VALUES (-1, 'x')",
    "INSERT INTO numbers VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = 'x'",
    "UPDATE numbers SET name = 'x'",
    "DELETE FROM numbers",
    "DELETE FROM numbers RETURNING *",
    "REPLACE INTO numbers VALUES (1, 'x')",
    "WITH some AS (SELECT 1) DELETE FROM numbers",
    "WITH some AS (SELECT 1) INSERT INTO numbers SELECT -9, 'x'",
    "/* SELECT */ DELETE FROM numbers",
    "\ufeffDELETE FROM numbers",
    ";;; DELETE FROM numbers",
    "EXPLAIN DELETE FROM numbers",
    "INSERT INTO words VALUES ('two')",
    "DELETE FROM place_node",
    "CREATE TABLE t (a)",
    "CREATE TABLE copied AS SELECT * FROM numbers",
    "CREATE VIEW v AS SELECT 1",
    "CREATE INDEX i ON numbers (name)",
    "CREATE TRIGGER g AFTER INSERT ON numbers BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE more USING fts5 (a)",
    "CREATE VIRTUAL TABLE more USING FTS5 (a)",
    "ALTER TABLE numbers RENAME TO others",
    "ALTER TABLE numbers ADD COLUMN more",
    "DROP TABLE numbers",
    "DROP VIEW names",
    "REINDEX",
    "ANALYZE",
)
TEMPORARY = "CREATE TEMP TRIGGER g AFTER INSERT ON numbers BEGIN DELETE FROM numbers; END"
NEVER = (
    "ATTACH '{folder}/other.db' AS other",
    "ATTACH 'file:{folder}/other.db?mode=rwc' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '{folder}/other.db'",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode(delete)",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA query_only = OFF",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA user_version = 1",
    "PRAGMA trusted_schema = ON",
    "PRAGMA hard_heap_limit = 0",
    "PRAGMA mmap_size = 1000000000",
    "PRAGMA temp_store_directory = '/'",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA database_list",
    "PRAGMA optimize",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT load_extension('x')",
    "SELECT Load_Extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('{folder}/x', 'y')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "SELECT * FROM fts3tokenize",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM sqlite_stmt",
    "CREATE TABLE x AS SELECT fts3_tokenizer('simple')",
    "CREATE TEMP TABLE t (a)",
    "CREATE TABLE temp.t (a)",
    "CREATE TEMP VIEW v AS SELECT 1",
    TEMPORARY,
    "CREATE TRIGGER temp.g AFTER INSERT ON numbers BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE t USING dbstat",
    "CREATE VIRTUAL TABLE t USING sqlite_dbpage",
    "CREATE VIRTUAL TABLE t USING csv(filename='/etc/passwd')",
    "CREATE VIRTUAL TABLE temp.t USING csv(filename='/etc/passwd')",
    "CREATE VIRTUAL TABLE temp.t USING fts5(a)",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, '')",
    "UPDATE sqlite_schema SET sql = 'CREATE TABLE numbers (x)'",
    "DELETE FROM sqlite_schema",
    "SELECT 1; DELETE FROM numbers",
    "SELECT 1;\0DELETE FROM numbers",
    "SELECT 1\0; DELETE FROM numbers",
    "\0DELETE FROM numbers",
    "\u00a0DELETE FROM numbers",
)
"""Statements refused even with write access."""

EXTRA = """
CREATE VIEW names AS SELECT name FROM numbers;
CREATE VIRTUAL TABLE words USING fts5 (word);
INSERT INTO words VALUES ('one');
CREATE VIRTUAL TABLE place USING rtree (id, x0, x1);
"""
"""Makes the tables of these statements, beside `numbers`."""
