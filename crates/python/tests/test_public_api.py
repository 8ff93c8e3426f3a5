"""What the module offers, by name and signature, is in `public_api.txt`, so that each change of it is seen.

    python crates/python/tests/test_public_api.py > crates/python/tests/public_api.txt     # after a change that is meant
"""

import inspect
from pathlib import Path

import shardtool as st

LISTED = Path(__file__).with_name("public_api.txt")


def signature(thing) -> str:
    """Returns the names and defaults of parameters, without types, which the type checkers' tests hold."""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return "(…)"
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def members(kind) -> list[str]:
    lines = []
    for name in sorted(name for name in dir(kind) if not name.startswith("_")):
        member = inspect.getattr_static(kind, name)
        inherited = any(name in vars(base) for base in kind.__mro__ if base in (dict, tuple, list, Exception, BaseException, OSError))
        if inherited:
            continue
        if callable(getattr(kind, name)):
            lines.append(f"    {name}{signature(getattr(kind, name))}")
        elif isinstance(member, property) or type(member).__name__ in ("getset_descriptor", "member_descriptor"):
            lines.append(f"    {name}")
    return lines


def listing() -> str:
    lines = []
    for name in sorted(st.__all__):
        thing = getattr(st, name)
        if inspect.isclass(thing):
            bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
            lines.append(f"class {name}({bases}): {name}{signature(thing)}" if bases else f"class {name}: {name}{signature(thing)}")
            lines += members(thing)
        elif callable(thing):
            lines.append(f"{name}{signature(thing)}")
        else:
            lines.append(f"{name}: {type(thing).__name__}")
    return "\n".join(lines) + "\n"


def test_every_change_of_the_interface_is_listed():
    assert listing() == LISTED.read_text(), f"if the change is meant, run: python {__file__} > {LISTED}"


def test_loader_has_at_most_16_parameters():
    parameters = [name for name in inspect.signature(st.Loader).parameters if name != "unknown"]
    assert len(parameters) <= 16, parameters


if __name__ == "__main__":
    print(listing(), end="")
