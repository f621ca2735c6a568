"""Small recordings in every file format, made of tables that a test can spoil before writing."""

import csv
import math
from pathlib import Path

from tacit.highway.highd_files import highd_reading, three_files

FOOT = 0.3048
HIGHWAY_DATA = next(
    (
        parent / "shared" / "data" / "highway"
        for parent in Path(__file__).parents[3:5]
        if (parent / "shared" / "data" / "highway").is_dir()
    ),
    None,
)


def write_table(path, rows, header=True, separator=","):
    """A list of dictionaries as a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        if header:
            file.write(separator.join(rows[0]) + "\n")
        if separator == ",":
            csv.writer(file, lineterminator="\n").writerows(row.values() for row in rows)
        else:
            file.writelines(separator.join(map(str, row.values())) + "\n" for row in rows)
    return path


def write_three(folder, tables, name="03"):
    """The tables of a highD or exiD recording as three files."""
    for part, rows in tables.items():
        write_table(folder / f"{name}_{part}.csv", rows)
    return folder


def read_highd(folder, name, geometry="centre"):
    """The carriageways of a highD recording."""
    return highd_reading(three_files(folder, name), geometry).announce()


def rows_of(tables, vehicle, key="id"):
    """The rows of the tracks of one vehicle."""
    return [row for row in tables["tracks"] if row[key] == vehicle]


def drop(tables, rows):
    """Take rows out of the tracks."""
    tables["tracks"] = [row for row in tables["tracks"] if not any(row is bad for bad in rows)]


def highd_tables(vehicles=8, frames=10, number=3):
    """2 x 2 lanes, as many vehicles in each direction; direction 1 is direction 2 turned by 180°.

    Turned around (210, 18), the middle of the picture. Odd ids drive in direction 1.
    """
    about = {"id": number, "frameRate": 25, "locationId": 2, "speedLimit": -1.0, "duration": 1e1}
    about |= {"upperLaneMarkings": "8.00;11.75;15.50", "lowerLaneMarkings": "20.50;24.25;28.00"}
    tables = {"recordingMeta": [about], "tracksMeta": [], "tracks": []}
    for vehicle in range(1, vehicles + 1):
        way, pair = 1 + (vehicle + 1) % 2, (vehicle - 1) // 2
        truck = pair % 4 == 3
        length, width, speed = (14.0, 2.5, 24.0) if truck else (4.5, 1.8, 32.0)
        y = 26.1 if pair % 2 else 22.4
        first = 1 + pair // 2
        for k in range(frames):
            x = 30.0 + 20 * (pair % 8) + speed * 0.04 * k
            row = {"frame": first + k, "id": vehicle}
            centre = (x, y) if way == 2 else (420 - x, 36 - y)
            row |= {"x": round(centre[0] - length / 2, 4), "y": round(centre[1] - width / 2, 4)}
            sign = 1 if way == 2 else -1
            row |= {"width": length, "height": width, "xVelocity": sign * speed}
            row |= {"yVelocity": sign * 0.1, "dhw": 0.0, "ttc": -1e9, "precedingId": 9999}
            tables["tracks"].append(row | {"laneId": 5})
        about_vehicle = {"id": vehicle, "width": length, "height": width, "initialFrame": first}
        about_vehicle |= {"finalFrame": first + frames - 1, "numFrames": frames}
        about_vehicle |= {"class": "Truck" if truck else "Car", "drivingDirection": way}
        tables["tracksMeta"].append(about_vehicle)
    return tables


def ngsim_rows(vehicles=6, frames=40, start=1_118_846_979_000, first=10):
    """Rows of the 18 columns: three lanes of 12 ft at constant speed."""
    rows = []
    for vehicle in range(1, vehicles + 1):
        lane, speed = 1 + vehicle % 3, 40.0 + vehicle
        for k in range(frames):
            frame = first + k
            y = 100.0 + 60 * vehicle + 0.1 * speed * k
            row = {"Vehicle_ID": vehicle, "Frame_ID": frame, "Total_Frames": frames}
            row |= {"Global_Time": start + 100 * frame, "Local_X": 12.0 * lane - 6}
            row |= {"Local_Y": round(y, 3), "Global_X": 6451137.641, "Global_Y": 1873344.962}
            row |= {"v_Length": 14.5, "v_Width": 4.9, "v_Class": 2, "v_Vel": speed}
            row |= {"v_Acc": 0.0, "Lane_ID": lane, "Preceding": 0, "Following": 0}
            rows.append(row | {"Space_Headway": 0.0, "Time_Headway": 9999.99})
    return rows


def portal_rows(rows, site):
    """The same rows in the layout of the data portal."""
    zones = dict.fromkeys(("O_Zone", "D_Zone", "Int_ID", "Section_ID", "Direction", "Movement"), "")
    result = []
    for row in rows:
        items = list({name.replace("v_Length", "v_length"): row[name] for name in row}.items())
        result.append(dict(items[:14]) | zones | dict(items[14:]) | {"Location": site})
    return result


def exid_tables(vehicles=24, frames=60, radius=2000.0, number=7):
    """Two directions with three lanes of 3.5 m each, on a circle that bends to the left.

    Vehicles with even numbers drive to the right (direction 2), the others to the left. Lanes are
    `radius` +- 3.5 and so on from the centre of the circle; the last vehicle of each direction
    leaves on a ramp.
    """
    tables = {"recordingMeta": [{"recordingId": number, "locationId": 1, "frameRate": 25.0}]}
    tables |= {"tracksMeta": [], "tracks": []}
    for vehicle in range(vehicles):
        way, lane = 2 - vehicle % 2, (vehicle // 2) % 3
        sign, speed = (1 if way == 2 else -1), 30.0
        ramp = vehicle >= vehicles - 2
        for k in range(frames):
            along = sign * (-180 + 25 * (vehicle // 2) + speed * 0.04 * k)
            away = sign * (10.0 + 3.5 * lane) + (sign * (30 + 0.4 * k) if ramp else 0)
            angle = along / radius
            row = {"recordingId": number, "trackId": vehicle, "frame": k + vehicle}
            row["xCenter"] = (radius + away) * math.sin(angle)
            row["yCenter"] = radius - (radius + away) * math.cos(angle)
            heading = angle + (0 if sign == 1 else math.pi) + (-0.3 if ramp else 0)
            row |= {"heading": math.degrees(heading) % 360, "width": 1.8, "length": 4.6}
            row |= {"xVelocity": speed * math.cos(heading), "yVelocity": speed * math.sin(heading)}
            row |= {"laneWidth": "3.5;3.9" if k % 3 == 0 else 3.5, "laneletId": "1489;1500"}
            tables["tracks"].append(row)
        about = {"recordingId": number, "trackId": vehicle, "initialFrame": vehicle}
        about |= {"finalFrame": vehicle + frames - 1, "numFrames": frames, "width": 99.0}
        tables["tracksMeta"].append(
            about | {"length": 99.0, "class": "truck" if lane == 2 else "car"}
        )
    return tables


def clip_tables():
    clips = [
        {"clip": name, "dt": 0.1, "steps": 5, "lanes": 2, "lane_width_m": 3.6} for name in "AB"
    ]
    states = [
        {"clip": clip, "id": vehicle, "step": step, "length": 4.5 * vehicle, "width": 1.8}
        | {"s": 10.0 * vehicle + step, "d": -3.6, "v": 10.0, "heading": 0.1, "lane": 2}
        for clip in "AB"
        for vehicle in (1, 2)
        for step in range(5)
    ]
    return states, clips


def write_clips(folder, states, clips):
    return write_table(folder / "us101_states.csv", states), write_table(
        folder / "us101_clips.csv", clips
    )
