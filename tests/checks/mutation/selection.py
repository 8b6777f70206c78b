"""A plugin that names tests to pytest without their parameters: not every value of one can be named in a command."""


def pytest_load_initial_conftests(args: list[str]) -> None:
    tests = dict.fromkeys(arg.partition("[")[0] for arg in args if ".py::" in arg)
    args[:] = [*(arg for arg in args if ".py::" not in arg), *tests]
