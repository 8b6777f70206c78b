"""What environment a server is started with."""

from ..hosts.clients import Client, Machine

__all__ = ["environment_from"]

# They run in a terminal, and hand on what the shell gave them.
_OF_TERMINALS = {"claude-code", "gemini", "codex"}
_BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# What a program has that was not started from a shell.
_OF_DESKTOP = {
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
}


def environment_from(client: Client | None, machine: Machine) -> dict[str, str]:
    """What the client hands on to a server, besides the variables of its entry; a desktop program for None."""
    shell = machine.environment
    if client is not None and client.name in _OF_TERMINALS:
        return {"PATH": "", **shell}
    inherited = {name: value for name, value in shell.items() if name.upper() in _OF_DESKTOP}
    # On Windows the PATH is a setting of the user, the same for all programs.
    return {**inherited, "PATH": shell.get("PATH", "") if machine.system == "windows" else _BARE_PATH}
