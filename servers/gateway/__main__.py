"""`python -m servers.gateway [NAME...]`: several servers as one over stdio."""

import sys

from servers.start import make_modules_lazy


def main() -> None:
    """Run the servers, and exit with their code."""
    make_modules_lazy()
    from shared.program.messages import exit_with_error, missing_extra_message, program_name

    from .program import run_gateway

    try:
        sys.exit(run_gateway(program_name(), sys.argv[1:]))
    except ModuleNotFoundError as error:
        # The catalog and configurations need this library.
        if error.name != "yaml":
            raise
    exit_with_error(program_name(), missing_extra_message("catalog"))


if __name__ == "__main__":
    main()
