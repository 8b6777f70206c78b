"""Ways to write, to read files, to run programs, to hang a server or to have it tell what it should not, all by one
statement that is given as a query to a server which may only read.

`CARELESS` and `PREPARATION` make the database a careless one: its owner left functions and views about, and its
administrator lets the role call what PostgreSQL by itself keeps for superusers. So what holds is what the server
does, and no lack of rights.
"""

from dataclasses import dataclass

__all__ = ["ANSWERED", "ATTACKS", "CARELESS", "FOLDER", "PREPARATION", "SECRET_QUERY", "Attack"]

FOLDER = "/FOLDER"
"""Stands in a statement for a directory where PostgreSQL may write."""
SECRET_QUERY = "SELECT 'the launch code is 0000'"
"""What the owner's session ran last."""

ANSWERED = "answered"
"""In place of a code, where rows are a harmless answer."""


@dataclass(frozen=True)
class Attack:
    """`codes` are those of which the answer has to have one; `ANSWERED` where rows are harmless."""

    name: str
    statement: str
    codes: tuple[str, ...]
    why: str


def _group(codes: str, why: str, **statements: str) -> tuple[Attack, ...]:
    return tuple(Attack(name, statement, tuple(codes.split()), why) for name, statement in statements.items())


CARELESS = """
CREATE FUNCTION raise_prices() RETURNS integer LANGUAGE sql SECURITY DEFINER AS
  'UPDATE product SET price = price + 1; SELECT 1';
CREATE FUNCTION fire() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS
  'BEGIN SET TRANSACTION READ WRITE; DELETE FROM payroll.salary; RETURN 1; END';
CREATE FUNCTION fire(integer, integer) RETURNS integer LANGUAGE sql SECURITY DEFINER AS
  'DELETE FROM payroll.salary; SELECT 1';
CREATE OPERATOR ### (LEFTARG = integer, RIGHTARG = integer, FUNCTION = fire);
CREATE FUNCTION sleep_on() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE ends timestamptz := clock_timestamp() + '15 s';
BEGIN
  WHILE clock_timestamp() < ends LOOP
    BEGIN
      PERFORM pg_sleep(15);
    EXCEPTION WHEN query_canceled THEN NULL;
    END;
  END LOOP;
  RETURN 1;
END $$;
CREATE SEQUENCE ticket;
CREATE VIEW view_of_tickets AS SELECT nextval('ticket') AS n;
CREATE VIEW view_that_sleeps AS SELECT pg_sleep(15)::text AS slept;
CREATE VIEW view_that_locks AS SELECT pg_advisory_lock(7)::text AS locked;
CREATE VIEW view_that_notifies AS SELECT pg_notify('news', 'from a view')::text AS told;
CREATE VIEW view_that_lifts_limits AS
  SELECT set_config('statement_timeout', '0', false), set_config('default_transaction_read_only', 'off', false) AS b;
CREATE VIEW view_that_becomes_another AS SELECT set_config('role', 'reader', false) AS role;
GRANT ALL ON SEQUENCE ticket TO reader;
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public TO reader;
GRANT CREATE ON SCHEMA public TO reader;
"""
"""What the owner did."""

PREPARATION = """
DO $$
DECLARE one text;
BEGIN
  FOR one IN SELECT name FROM pg_available_extensions
    WHERE name IN ('adminpack', 'dblink', 'file_fdw', 'pg_stat_statements', 'tablefunc', 'xml2') LOOP
    EXECUTE format('CREATE EXTENSION %I', one);
  END LOOP;
  FOR one IN SELECT oid::regprocedure FROM pg_proc WHERE prokind = 'f' AND proname ~
    '^(pg_read_|pg_ls_|pg_stat_|lo_|pg_reload|pg_rotate|pg_switch|pg_create_restore|pg_current_logfile|pg_file_|dblink'
    '|pg_log_backend|pg_(start|stop)_backup|pg_backup_|pg_import)' LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO reader', one);
  END LOOP;
END $$;
CREATE PROCEDURE give_away() LANGUAGE sql AS 'DELETE FROM customer';
SELECT lo_from_bytea(4242, 'kept');
GRANT ALL ON LARGE OBJECT 4242 TO reader;
"""
"""What the administrator did."""

_CHANGES = (
    _group(
        "refused",
        "a change is no query",
        insert="INSERT INTO category VALUES (99, NULL, 'x')",
        update="UPDATE product SET price = 0",
        delete="DELETE FROM review",
        merge="MERGE INTO category c USING (SELECT 99 AS id) n ON c.id = n.id WHEN MATCHED THEN DELETE",
        truncate="TRUNCATE review",
        create_table="CREATE TABLE stolen (x text)",
        create_table_as="CREATE TABLE stolen AS TABLE customer",
        create_temporary_table="CREATE TEMP TABLE stolen AS TABLE customer",
        create_view="CREATE VIEW product_names AS SELECT name FROM product",
        create_function="CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        create_c_function="CREATE FUNCTION f(cstring) RETURNS integer AS 'libc.so.6', 'system' LANGUAGE c STRICT",
        create_extension="CREATE EXTENSION plperlu",
        create_role="CREATE ROLE intruder SUPERUSER LOGIN",
        create_event_trigger="CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION warehouse.note()",
        alter_table="ALTER TABLE customer DROP COLUMN email",
        alter_role="ALTER ROLE guarded SUPERUSER",
        alter_role_setting="ALTER ROLE guarded SET statement_timeout = 0",
        alter_system="ALTER SYSTEM SET archive_command = 'touch /FOLDER/pwned'",
        drop_table="DROP TABLE review",
        drop_schema="DROP SCHEMA warehouse CASCADE",
        drop_owned="DROP OWNED BY guarded",
        grant="GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC",
        revoke="REVOKE ALL ON customer FROM writer",
        comment="COMMENT ON TABLE customer IS 'x'",
        refresh="REFRESH MATERIALIZED VIEW best_customer",
        do="DO $$ BEGIN DELETE FROM review; END $$",
        call="CALL give_away()",
        lock_table="LOCK TABLE customer IN ACCESS EXCLUSIVE MODE",
        vacuum="VACUUM customer",
        analyze="ANALYZE customer",
        cluster="CLUSTER customer USING customer_pkey",
        reindex="REINDEX TABLE customer",
        checkpoint="CHECKPOINT",
        load="LOAD 'auto_explain'",
        import_foreign_schema="IMPORT FOREIGN SCHEMA public FROM SERVER s INTO public",
    ),
    _group(
        "refused",
        "the first word reads and the rest changes, which PostgreSQL refuses in a transaction that may only read",
        with_insert="WITH n AS (INSERT INTO category VALUES (99, NULL, 'x') RETURNING id) SELECT * FROM n",
        with_update="WITH n AS (UPDATE product SET price = 0 RETURNING sku) SELECT count(*) FROM n",
        with_delete="WITH n AS (DELETE FROM review RETURNING *) SELECT * FROM n",
        with_before_a_delete="WITH n AS (SELECT 1) DELETE FROM review",
        with_that_is_not_read="WITH n AS (DELETE FROM review) SELECT 1",
        select_into="SELECT * INTO stolen FROM customer",
        select_into_temporary="SELECT * INTO TEMP stolen FROM customer",
        select_for_update="SELECT * FROM customer FOR UPDATE",
        select_for_key_share="SELECT * FROM customer FOR KEY SHARE",
        explain_analyze_insert="EXPLAIN ANALYZE INSERT INTO category VALUES (99, NULL, 'x')",
        explain_analyze_among_options="EXPLAIN (COSTS OFF, ANALYZE ON) DELETE FROM review",
        explain_analyze_with="EXPLAIN ANALYZE WITH n AS (DELETE FROM review RETURNING 1) SELECT * FROM n",
        nextval="SELECT nextval('ticket')",
        setval="SELECT setval('ticket', 1000)",
        nextval_in_a_view="SELECT * FROM view_of_tickets",
        definers_function="SELECT raise_prices()",
        operator_that_deletes="SELECT 1 ### 2",
        function_in_a_condition="SELECT 1 FROM product WHERE raise_prices() = 1",
    ),
    _group(
        "refused answered",
        "where PostgreSQL lets it run, it is undone",
        explain_analyze_create="EXPLAIN ANALYZE CREATE TABLE stolen AS TABLE customer",
    ),
    _group(
        "refused bad_statement",
        "a transaction can't become one that writes",
        function_that_would_write="SELECT fire()",
    ),
)

_SESSION = (
    _group(
        "refused",
        "the session and its transaction are the server's",
        begin="BEGIN",
        start_transaction="START TRANSACTION READ WRITE",
        commit="COMMIT",
        commit_and_chain="COMMIT AND CHAIN",
        end="END",
        rollback="ROLLBACK",
        abort="ABORT",
        savepoint="SAVEPOINT s",
        prepare_transaction="PREPARE TRANSACTION 'left'",
        set_transaction="SET TRANSACTION READ WRITE",
        set_characteristics="SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        set_read_only="SET transaction_read_only = off",
        set_timeout="SET statement_timeout = 0",
        set_local="SET LOCAL statement_timeout = 0",
        set_role="SET ROLE reader",
        set_authorization="SET SESSION AUTHORIZATION DEFAULT",
        set_search_path="SET search_path = warehouse",
        reset="RESET default_transaction_read_only",
        reset_all="RESET ALL",
        discard="DISCARD ALL",
        prepare="PREPARE p AS DELETE FROM review",
        execute="EXECUTE p",
        deallocate="DEALLOCATE ALL",
        explain_analyze_execute="EXPLAIN ANALYZE EXECUTE p",
        declare="DECLARE c CURSOR WITH HOLD FOR TABLE customer",
        fetch="FETCH ALL FROM c",
        close="CLOSE ALL",
        listen="LISTEN news",
        unlisten="UNLISTEN *",
        notify="NOTIFY news, 'x'",
        set_config_of_the_transaction="SELECT set_config('transaction_read_only', 'off', true)",
        set_config_of_the_timeout="SELECT set_config('statement_timeout', '0', false)",
        set_config_of_the_role="SELECT set_config('role', 'reader', false)",
        set_config_in_from="SELECT * FROM set_config('statement_timeout', '0', false)",
    ),
    _group(
        "refused bad_statement",
        "one call is one statement",
        two_statements="SELECT 1; DROP TABLE review",
        commit_and_drop="COMMIT; DROP TABLE review",
        select_commit_and_drop="SELECT 1; COMMIT; DROP TABLE review; BEGIN",
        second_behind_a_comment="SELECT 1 /* ; */; /* */ DELETE FROM review",
        second_behind_a_line="SELECT 1 --;\n; DELETE FROM review",
        second_behind_nothing=";;; DELETE FROM review",
        second_behind_a_string="SELECT ';'; DELETE FROM review",
        second_behind_a_dollar="SELECT $a$;$a$; DELETE FROM review",
        empty="",
        only_a_comment="-- nothing",
        not_closed="SELECT /* 1",
        psql_command="\\! touch /FOLDER/pwned",
    ),
)

_FILES = (
    _group(
        "refused",
        "files and programs of the machine are no data",
        copy_to_file="COPY customer TO '/FOLDER/pwned'",
        copy_query_to_file="COPY (SELECT 1) TO '/FOLDER/pwned'",
        copy_from_file="COPY document (title) FROM '/etc/passwd'",
        copy_to_program="COPY customer TO PROGRAM 'cat > /FOLDER/pwned'",
        copy_from_program="COPY document (title) FROM PROGRAM 'touch /FOLDER/pwned'",
        copy_to_stdout="COPY customer TO STDOUT",
        copy_from_stdin="COPY customer (name) FROM STDIN",
        foreign_server="CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        foreign_table="CREATE FOREIGN TABLE p (l text) SERVER files OPTIONS (filename '/etc/passwd')",
        read_file="SELECT pg_read_file('pg_hba.conf')",
        read_part_of_a_file="SELECT pg_read_file('postgresql.auto.conf', 0, 100)",
        read_binary_file="SELECT pg_read_binary_file('postgresql.conf')",
        list_directory="SELECT pg_ls_dir('.')",
        list_directory_in_from="SELECT * FROM pg_ls_dir('base')",
        list_logs="SELECT * FROM pg_ls_logdir()",
        list_wal="SELECT * FROM pg_ls_waldir()",
        list_temporary_files="SELECT * FROM pg_ls_tmpdir()",
        stat_file="SELECT * FROM pg_stat_file('postgresql.conf')",
        name_of_the_log="SELECT pg_current_logfile()",
        write_file="SELECT pg_file_write('pwned', 'x', false)",
        remove_file="SELECT pg_file_unlink('postgresql.auto.conf')",
        large_object_import="SELECT lo_import('/etc/passwd')",
        large_object_export="SELECT lo_export(4242, '/FOLDER/pwned')",
        large_object_create="SELECT lo_create(0)",
        large_object_creat="SELECT lo_creat(-1)",
        large_object_of_bytes="SELECT lo_from_bytea(0, 'x')",
        large_object_put="SELECT lo_put(4242, 0, 'x')",
        large_object_open="SELECT lowrite(lo_open(4242, 131072), 'x')",
        large_object_unlink="SELECT lo_unlink(4242)",
    ),
)

_SERVER = (
    _group(
        "refused",
        "it changes what no transaction takes back: other sessions, the server, or what others get to know",
        terminate="SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user",
        cancel="SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = current_user",
        reload="SELECT pg_reload_conf()",
        rotate_log="SELECT pg_rotate_logfile()",
        switch_wal="SELECT pg_switch_wal()",
        restore_point="SELECT pg_create_restore_point('p')",
        backup="SELECT pg_backup_start('b')",
        older_backup="SELECT pg_start_backup('b')",
        promote="SELECT pg_promote()",
        pause_replay="SELECT pg_wal_replay_pause()",
        physical_slot="SELECT pg_create_physical_replication_slot('s', true)",
        logical_slot="SELECT pg_create_logical_replication_slot('s', 'test_decoding')",
        drop_slot="SELECT pg_drop_replication_slot('s')",
        replication_origin="SELECT pg_replication_origin_create('o')",
        logical_message="SELECT pg_logical_emit_message(false, 'a', 'b')",
        export_snapshot="SELECT pg_export_snapshot()",
        notify_by_function="SELECT pg_notify('news', 'x')",
        log_memory="SELECT pg_log_backend_memory_contexts(pg_backend_pid())",
        reset_statistics="SELECT pg_stat_reset()",
        reset_shared_statistics="SELECT pg_stat_reset_shared('bgwriter')",
        reset_statements="SELECT pg_stat_statements_reset()",
        import_collations="SELECT pg_import_system_collations('public')",
        advisory_lock="SELECT pg_advisory_lock(1)",
        advisory_lock_of_two="SELECT pg_advisory_lock(1, 2)",
        advisory_lock_shared="SELECT pg_advisory_lock_shared(1)",
        advisory_lock_tried="SELECT pg_try_advisory_lock(1)",
        advisory_lock_tried_shared="SELECT pg_try_advisory_lock_shared(1)",
        advisory_lock_of_the_transaction="SELECT pg_advisory_xact_lock(1)",
        advisory_lock_of_the_transaction_tried="SELECT pg_try_advisory_xact_lock_shared(1)",
        advisory_unlock_all="SELECT pg_advisory_unlock_all()",
        dblink="SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t (x integer)",
        dblink_exec="SELECT dblink_exec('dbname=postgres', 'CREATE ROLE intruder')",
        dblink_connect="SELECT dblink_connect('c', 'dbname=postgres')",
        dblink_connect_unsafe="SELECT dblink_connect_u('c', 'dbname=postgres')",
        dblink_send="SELECT dblink_send_query('c', 'SELECT 1')",
    ),
    _group(
        "refused",
        "it runs a text as a query, where no function has a name that is seen",
        query_to_xml="SELECT query_to_xml('SELECT pg_sleep(9)', true, false, '')",
        query_to_xmlschema="SELECT query_to_xmlschema('SELECT pg_advisory_lock(1)', true, false, '')",
        query_to_xml_and_xmlschema="SELECT query_to_xml_and_xmlschema('SELECT pg_sleep(9)', true, false, '')",
        cursor_to_xml="SELECT cursor_to_xml('c', 10, true, false, '')",
        table_to_xml="SELECT table_to_xml('view_that_sleeps', true, false, '')",
        schema_to_xml="SELECT schema_to_xml('public', true, false, '')",
        database_to_xml="SELECT database_to_xml(true, false, '')",
        ts_stat="SELECT * FROM ts_stat('SELECT to_tsvector(pg_sleep(9)::text)')",
        ts_rewrite="SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, pg_sleep(9)::text::tsquery')",
        crosstab="SELECT * FROM crosstab('SELECT 1, 1, pg_sleep(9)::text') AS t (a integer, b text)",
        connectby="SELECT * FROM connectby('view_that_sleeps', 'slept', 'slept', 'a', 0) AS (a text, b text, c int)",
        xpath_table="SELECT * FROM xpath_table('slept', 'slept', 'view_that_sleeps', '/', 'true') AS (a text)",
    ),
)

_DISGUISES = (
    _group(
        "refused",
        "a name is the same however it is written, and a string ends where PostgreSQL has it end",
        sleep="SELECT pg_sleep(9)",
        sleep_for="SELECT pg_sleep_for('9 s')",
        sleep_until="SELECT pg_sleep_until(now() + '9 s')",
        sleep_in_from="SELECT * FROM pg_sleep(9)",
        sleep_in_rows_from="SELECT * FROM ROWS FROM (pg_sleep(9), generate_series(1, 2))",
        sleep_in_values="VALUES (pg_sleep(9)::text)",
        sleep_in_with="WITH s AS MATERIALIZED (SELECT pg_sleep(9)::text) TABLE s",
        sleep_in_order="SELECT 1 ORDER BY pg_sleep(9)::text",
        sleep_in_limit="SELECT 1 LIMIT length(pg_sleep(9)::text) + 1",
        sleep_explained="EXPLAIN ANALYZE SELECT pg_sleep(9)",
        sleep_in_parentheses="(((SELECT pg_sleep(9))))",
        sleep_in_upper_case="SELECT PG_SLEEP(9)",
        sleep_quoted='SELECT "pg_sleep"(9)',
        sleep_qualified="SELECT pg_catalog.pg_sleep(9)",
        sleep_qualified_and_quoted='SELECT "pg_catalog" . "pg_sleep" (9)',
        sleep_of_a_database_and_a_schema='SELECT pg_catalog./*"*/pg_sleep(9)',
        sleep_escaped='SELECT U&"pg\\005fsleep"(9)',
        sleep_escaped_another_way="SELECT U&\"pg!005fsleep\" UESCAPE '!' (9)",
        sleep_escaped_in_small='SELECT u&"\\0070g_sleep"(9)',
        sleep_behind_a_comment="SELECT pg_sleep /* ( */ (9)",
        sleep_behind_a_nested_comment="SELECT pg_sleep /* /* */ ( */ (9)",
        sleep_behind_a_line="SELECT pg_sleep -- (\n (9)",
        sleep_behind_a_nested_comment_and_a_quote="SELECT 1 /* /* */ 'x */ , pg_sleep(9) --'",
        sleep_behind_a_backslash=r"SELECT 'a\', pg_sleep(9), '\'",
        sleep_behind_an_escape=r"SELECT E'\'', pg_sleep(9), E'\''",
        sleep_behind_an_escape_that_goes_on="SELECT E'a'\n'\\'', pg_sleep(9), E'\\''",
        sleep_behind_a_dollar="SELECT $$'$$, pg_sleep(9), $$'$$",
        sleep_behind_a_tagged_dollar="SELECT $a$ $b$ ' $a$, pg_sleep(9), $b$ $a$ $b$",
        sleep_behind_a_dollar_in_a_name="SELECT 1 AS a$b$, pg_sleep(9)::text AS c$b$",
        sleep_behind_a_quoted_quote='SELECT 1 AS "\'", pg_sleep(9) AS "\'"',
        sleep_behind_a_bit_string="SELECT B'1', pg_sleep(9), X'1'",
        sleep_behind_a_carriage_return="SELECT 1 -- \r, pg_sleep(9)",
        sleep_behind_a_form_feed="\f\rSELECT\tpg_sleep\f(9)",
    ),
)

_HANGS = (
    _group(
        "timeout",
        "the operator's time is over",
        endless_join="SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
        endless_recursion="WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n",
        endless_in_explain="EXPLAIN ANALYZE SELECT count(*) FROM generate_series(1, 1e12) n",
        slow_pattern=r"SELECT string_agg(chr(n), '') ~ '(.+)(.+)(.+)\3' FROM generate_series(1000, 1400) n",
        slow_like="SELECT count(*) FROM generate_series(1, 10000000) n"
        " WHERE repeat('a', 3000 + n % 1000) LIKE repeat('%a', 40) || 'b'",
        slow_number="SELECT count(ln(n::numeric + 10.0::numeric ^ 3000)) FROM generate_series(1, 1000000) n",
        view_that_sleeps="SELECT * FROM view_that_sleeps",
    ),
    _group(
        "timeout",
        "the time is over where PostgreSQL goes on as well, as it does within libxml2",
        path_that_nobody_stops="SELECT xpath('//x[//x[//x[//x]]]', xmlelement(name a, repeat('<x/>', 250)::xml))",
        function_that_nobody_stops="SELECT sleep_on()",
    ),
    _group(
        "timeout too_large no_space busy",
        "it is stopped by time, or by what a statement may take",
        sort_on_disk="SELECT count(*) FROM (SELECT md5(n::text) m FROM generate_series(1, 30000000) n ORDER BY 1) s",
        huge_array="SELECT cardinality(array_agg(repeat('x', 100) || n)) FROM generate_series(1, 50000000) n",
        recursion_that_doubles="WITH RECURSIVE n(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM n) TABLE n OFFSET 99",
    ),
)

_SIZES = (
    _group(
        "answered too_large timeout",
        "an answer has a size that hosts take, whatever is asked for",
        long_text="SELECT repeat('x', 100000000)",
        long_texts="SELECT repeat('x', 10000000) FROM generate_series(1, 50)",
        many_rows="SELECT n, md5(n::text) FROM generate_series(1, 3000000) n",
        long_array="SELECT array_agg(n) FROM generate_series(1, 2000000) n",
        many_columns=f"SELECT {', '.join(['1'] * 1_600)}",
        long_pattern="SELECT repeat('a', 60000) ~ repeat('(a*)*', 1500)",
        long_number="SELECT 10 ^ 100000::numeric",
    ),
    _group(
        "bad_statement too_large timeout",
        "PostgreSQL has limits of its own",
        too_many_columns=f"SELECT {', '.join(['1'] * 2_000)}",
        too_deep=f"SELECT {'(' * 20_000}1{')' * 20_000}",
        too_deep_a_document="SELECT repeat('[', 100000)::jsonb",
        too_many_operators=f"SELECT {'-' + ' -' * 50_000} 1",
    ),
    _group(
        "refused bad_statement bad_parameters bad_value",
        "it is no text that PostgreSQL can hold",
        nul_byte="SELECT 1\x00; DROP TABLE review",
        nul_in_a_string="SELECT E'\\000'",
    ),
    _group(
        "answered",
        "the first rows come, also where there is none, or no end of them",
        no_rows_of_nothing="SELECT FROM customer WHERE false",
        cross_join='SELECT a.id, b.id FROM "order" a, "order" b, "order" c',
    ),
)

_LEAKS = (
    _group(
        "denied refused",
        "PostgreSQL keeps it for superusers",
        passwords="SELECT rolname, rolpassword FROM pg_authid",
        passwords_by_another_name="SELECT * FROM pg_shadow",
        access_rules="SELECT * FROM pg_hba_file_rules",
        file_settings="SELECT * FROM pg_file_settings",
        data_directory="SELECT current_setting('data_directory')",
        data_directory_shown="SHOW data_directory",
        settings_file_shown="SHOW config_file",
        salaries="SELECT * FROM payroll.salary",
        user_mappings="SELECT * FROM pg_user_mapping",
        large_objects="SELECT * FROM pg_largeobject",
        sample_of_statistics="SELECT * FROM pg_statistic",
    ),
    _group(
        "answered",
        "PostgreSQL leaves out what the role may not see",
        queries_of_others="SELECT usename, query FROM pg_stat_activity",
        statements_of_others="SELECT userid::regrole, query FROM pg_stat_statements",
        paths_among_settings="SELECT name, setting FROM pg_settings WHERE name ~ '(directory|file)$'",
        users="SELECT * FROM pg_user",
    ),
    _group(
        "bad_statement bad_value denied refused",
        "an error has no paths, whatever it is about",
        missing_procedure="SELECT 'x'::regprocedure",
        missing_collation="SELECT 'a' COLLATE \"../../etc/passwd\"",
        missing_time_zone="SELECT now() AT TIME ZONE '../../../etc/passwd'",
        missing_dictionary="SELECT ts_lexize('../../etc/passwd', 'x')",
        entity_that_is_unknown="SELECT xmlparse(DOCUMENT '<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///nonesuch\">]><a>&f;</a>')",
        salary_in_an_error="SELECT (SELECT string_agg(name, ',') FROM payroll.salary)::integer",
    ),
    _group(
        "answered bad_statement bad_value",
        "an entity of a document is not read from a file",
        entity_that_is_read="SELECT xmlparse(DOCUMENT '<!DOCTYPE a [<!ENTITY e SYSTEM \"/etc/passwd\">]><a>&e;</a>')",
    ),
)

_LEFT_BEHIND = (
    _group(
        "answered refused timeout",
        "the text does not show it, so what it did to the session has to be undone",
        view_that_locks="SELECT * FROM view_that_locks",
        view_that_notifies="SELECT * FROM view_that_notifies",
        view_that_lifts_limits="SELECT * FROM view_that_lifts_limits",
        view_that_becomes_another="SELECT * FROM view_that_becomes_another",
    ),
)

ATTACKS: tuple[Attack, ...] = tuple(
    attack
    for family in (_CHANGES, _SESSION, _FILES, _SERVER, _DISGUISES, _HANGS, _SIZES, _LEAKS, _LEFT_BEHIND)
    for group in family
    for attack in group
)
