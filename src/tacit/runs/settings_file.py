"""The settings of a run: written once with the versions of libraries, compared when it goes on."""

import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from tacit.errors import ArgumentError, StorageError
from tacit.runs.files import plain, write_json

ABSENT = "absent"
PACKAGES = ("tacit", "jax", "numpy", "scipy", "gymnasium", "equinox", "optax")


def keep_settings(path: Path, settings: dict[str, Any], label: str) -> list[str]:
    """Write the settings to `path`, or raise an error if it holds other ones.

    Other versions of libraries are allowed; the file then lists them under `continued_with`. The
    sentences that this returns say which they are.
    """
    wanted = {"label": label, "settings": as_json(settings)}
    now = installed_versions()
    if not path.exists():
        write_json(path, {**wanted, "versions": now, "continued_with": []})
        return []
    found = read_settings(path)
    differing = differences({"label": found["label"]}, {"label": label})
    differing += differences(found["settings"], wanted["settings"])
    if differing:
        raise StorageError(
            f"{path.parent}: holds a run with other settings: {'; '.join(differing)}; "
            "choose another folder, or the same settings to continue that run"
        )
    used = [found["versions"], *found["continued_with"]]
    changed = differences(used[-1], now)
    if not changed:
        return []
    write_json(path, {**found, "continued_with": [*found["continued_with"], now]})
    return [
        f"{path.parent}: continued with other versions than before, so perhaps not bit for bit: "
        + "; ".join(changed)
    ]


def read_settings(path: Path) -> dict[str, Any]:
    """What `keep_settings` wrote: `label`, `settings`, `versions` and `continued_with`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for field, kind in (
            ("label", str),
            ("settings", dict),
            ("versions", dict),
            ("continued_with", list),
        ):
            if not isinstance(found[field], kind):
                raise ValueError(f"{field} is not a {kind.__name__}")
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"{path}: cannot be read, or is not what tacit wrote ({type(error).__name__}: {error})"
        ) from None
    return found


def installed_versions() -> dict[str, str]:
    """Versions of Python, tacit and the libraries that its numbers depend on."""
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in PACKAGES},
        "mujoco": importlib.metadata.version("mujoco-core"),
    }


def differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """`field: old there, new here` for each field that differs, also inside nested settings."""
    old, new = flat(there), flat(here)
    return [
        f"{name}: {text(old, name)} there, {text(new, name)} here"
        for name in {**old, **new}
        if text(old, name) != text(new, name) and old.get(name, old) != new.get(name, new)
    ]


def flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one dictionary with dotted names."""
    result: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict) and value:
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result


def text(fields: dict[str, Any], name: str) -> str:
    """A value as it stands in the file; NaN equals NaN in this form."""
    return json.dumps(fields[name], ensure_ascii=False) if name in fields else ABSENT


def as_json(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they will be read back, or an error that names the field that cannot be."""
    for name, value in settings.items():
        try:
            json.dumps(value, default=plain)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"the setting {name} cannot be written: {error}") from None
    return json.loads(json.dumps(settings, default=plain))
