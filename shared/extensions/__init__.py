"""The `Extension`s of this package; each module or package contains one."""
