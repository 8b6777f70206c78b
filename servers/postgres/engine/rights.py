"""Reads and checks the permissions of this program's login role, which should have no more than its clients need."""

from typing import NamedTuple

from .link import Ask

_POWERS = {
    "pg_read_server_files": "read files on the machine",
    "pg_write_server_files": "write files on the machine",
    "pg_execute_server_program": "run programs on the machine",
    "pg_signal_backend": "end the queries of other users",
    "pg_checkpoint": "force checkpoints",
    "pg_create_subscription": "connect to other servers",
    "pg_maintain": "lock and rewrite every table",
}
"""Predefined roles that allow more than clients' queries should do, each with what it allows. (`pg_read_all_data` is
suitable for a reader, and not listed.)"""

# `session_user` rather than `current_user`, since a session can switch to any role of which its login role is a
# member.
_ROLE = """
    SELECT rolname::text, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
    FROM pg_catalog.pg_roles WHERE rolname = session_user"""
_MEMBER = """
    SELECT rolname::text, rolsuper FROM pg_catalog.pg_roles
    WHERE (rolsuper OR rolname::text = ANY ($1::text[])) AND rolname <> session_user
    AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER') ORDER BY 1"""
_WRITES = """
    SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'f', 'v') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND (pg_catalog.has_table_privilege(session_user, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    OR pg_catalog.has_any_column_privilege(session_user, c.oid, 'INSERT, UPDATE')))"""


class Rights(NamedTuple):
    """The permissions of a role."""

    role: str
    is_superuser: bool
    powers: tuple[str, ...]
    """Descriptions of what the role may do outside the database."""
    attributes: tuple[str, ...]
    """Attributes of the role, as in CREATE ROLE, that a reader does not need."""
    writes: bool
    """True if the role may change some table. The read-only transactions of this program still prevent changes."""


async def read_rights(ask: Ask) -> Rights:
    """Read the permissions of the login role. Raises SqlError."""
    ((role, superuser, *flags),) = await ask(_ROLE)
    memberships = await ask(_MEMBER, [*_POWERS])
    powers = [
        f"become the superuser {name}" if is_super else f"{_POWERS[name]} ({name})"
        for name, is_super in memberships
        if not superuser
    ]
    attribute_names = ("BYPASSRLS", "CREATEROLE", "CREATEDB", "REPLICATION")
    ((writes,),) = await ask(_WRITES)
    attributes = tuple(word for word, flag in zip(attribute_names, flags, strict=True) if flag)
    return Rights(role, superuser, tuple(powers), attributes, writes)


def check_rights(rights: Rights, name: str) -> None:
    """Raise ValueError if the role has permissions that no client should have. `name` is the name of the database,
    for the text."""
    if not rights.is_superuser and not rights.powers:
        return
    may = "do everything, as a superuser" if rights.is_superuser else ", ".join(rights.powers)
    raise ValueError(
        f"{name}: the role {rights.role!r} may {may}. Create a role for this server that may read only what it "
        "needs, for example: CREATE ROLE mcp_reader LOGIN PASSWORD '…' IN ROLE pg_read_all_data; "
        "or start with --allow-privileged"
    )
