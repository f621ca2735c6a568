"""Damage to single vehicles of a recording in the layout of highD."""

from collections.abc import Callable

from text_table import TextTable

from tacit.highway.highd_files import ThreeFiles

FEWEST_ROWS = 10
"""Of the vehicle that is damaged, so that something is left of it."""


def chosen_vehicle(files: ThreeFiles) -> str:
    """The id of the first vehicle with enough rows."""
    table = TextTable.read(files.vehicles)
    for name, number in zip(table.cells("id"), table.cells("numFrames"), strict=True):
        if int(number) >= FEWEST_ROWS:
            return name
    return table.cells("id")[0]


def edit_vehicles(files: ThreeFiles, edit: Callable[[TextTable], TextTable]) -> None:
    """Rewrite the descriptions of all vehicles."""
    edit(TextTable.read(files.vehicles)).write(files.vehicles)


def edit_rows(files: ThreeFiles, edit: Callable[[TextTable, list[int]], TextTable]) -> None:
    """Rewrite the tracks, given the rows of the chosen vehicle."""
    table = TextTable.read(files.tracks)
    edit(table, table.where("id", chosen_vehicle(files))).write(files.tracks)


def some_vehicles(table: TextTable, every: int | None) -> list[int]:
    """Rows of `tracksMeta`: the first one, or one in so many."""
    return [0] if every is None else list(range(0, len(table.rows), every))


def unknown_directions(files: ThreeFiles, every: int | None) -> None:
    """Direction 3, which does not exist."""
    edit_vehicles(
        files, lambda table: table.change("drivingDirection", "3", some_vehicles(table, every))
    )


def turn_around(files: ThreeFiles, every: int | None) -> None:
    """The direction that the velocities contradict."""
    other = {"1": "2", "2": "1"}
    edit_vehicles(
        files,
        lambda table: table.change(
            "drivingDirection", lambda cell: other[cell], some_vehicles(table, every)
        ),
    )


def drop_rows(files: ThreeFiles) -> None:
    """The description stays."""
    edit_rows(files, TextTable.without_rows)


def drop_description(files: ThreeFiles) -> None:
    """The rows stay."""
    vehicle = chosen_vehicle(files)
    edit_vehicles(files, lambda table: table.without_rows(table.where("id", vehicle)))


def describe_frames(files: ThreeFiles, number: Callable[[str], str]) -> None:
    """Another number of frames in the description of the chosen vehicle."""
    vehicle = chosen_vehicle(files)
    edit_vehicles(
        files, lambda table: table.change("numFrames", number, table.where("id", vehicle))
    )


def fewer_frames_described(files: ThreeFiles) -> None:
    """One fewer than there are."""
    describe_frames(files, lambda number: str(int(number) - 1))


def cut_frames(files: ThreeFiles) -> None:
    """Leave 3 frames out in the middle; the description does not know."""
    edit_rows(
        files,
        lambda table, rows: table.without_rows(rows[len(rows) // 2 - 1 : len(rows) // 2 + 2]),
    )


def no_frames(files: ThreeFiles) -> None:
    """No rows, and the description says so."""
    edit_rows(files, TextTable.without_rows)
    describe_frames(files, lambda _: "0")


def cut_to_one_frame(files: ThreeFiles) -> None:
    """The first row stays, and the description says so."""
    edit_rows(files, lambda table, rows: table.without_rows(rows[1:]))
    describe_frames(files, lambda _: "1")


def repeat_rows(files: ThreeFiles) -> None:
    """The first 3 rows again at the end of the file, elsewhere on the road."""

    def repeated(table: TextTable, rows: list[int]) -> TextTable:
        again = TextTable(table.names, [table.rows[row] for row in rows[:3]])
        moved = again.change("x", lambda cell: f"{float(cell) + 50:.2f}")
        return TextTable(table.names, table.rows + moved.rows)

    edit_rows(files, repeated)


def resize(files: ThreeFiles, size: str) -> None:
    """The same width in all rows and in the description."""
    vehicle = chosen_vehicle(files)
    edit_rows(files, lambda table, rows: table.change("width", size, rows))
    edit_vehicles(files, lambda table: table.change("width", size, table.where("id", vehicle)))


def swap_sizes(files: ThreeFiles) -> None:
    """Width and height of one vehicle, in all rows and in the description."""

    def swapped(table: TextTable, rows: list[int]) -> TextTable:
        wide, high = table.cells("width")[rows[0]], table.cells("height")[rows[0]]
        return table.change("width", high, rows).change("height", wide, rows)

    vehicle = chosen_vehicle(files)
    edit_rows(files, swapped)
    edit_vehicles(files, lambda table: swapped(table, table.where("id", vehicle)))


def jitter(files: ThreeFiles) -> None:
    """Every other row of all vehicles has a box that is a centimetre longer."""
    table = TextTable.read(files.tracks)
    odd = list(range(1, len(table.rows), 2))
    table.change("width", lambda cell: f"{float(cell) + 0.01:.2f}", odd).write(files.tracks)


def each_time_to_collision(table: TextTable) -> TextTable:
    """Negative and huge ones in turn."""
    even, odd = list(range(0, len(table.rows), 2)), list(range(1, len(table.rows), 2))
    return table.change("ttc", "-3.20", even).change("ttc", "123456789.00", odd)
