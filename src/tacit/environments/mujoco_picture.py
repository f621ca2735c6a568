"""Pictures of a MuJoCo robot and of the limit on its x position, drawn in software.

MuJoCo's own renderer needs OpenGL libraries of the system and a choice made before it is imported;
matplotlib's Agg needs neither, so a picture looks the same on every machine.
"""
# pyright: reportAttributeAccessIssue=false

from functools import lru_cache
from typing import Literal

import matplotlib
import mujoco  # its names are compiled, and pyright cannot see them
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform
from numpy.typing import ArrayLike

from tacit.environments import tabular_environment as tabular
from tacit.errors import ArgumentError

SKY, FLOOR, SHADOW = (255, 255, 255), (226, 230, 227), (192, 197, 203)
INK, LIMIT = (58, 62, 70), (196, 52, 44)
WIDTH, HEIGHT = 640, 400
# Rows, from below, of the two parts of the picture; words stand under and above them.
RULER, SCENE = (26, 46), (60, 358)
GROUND, HATCH_PERIOD, TICK_DISTANCE, LEAN = 34, 14, 80, 0.26
FONT = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
CIRCLE = np.array([(np.cos(a), np.sin(a)) for a in np.linspace(0, 2 * np.pi, 65)]).T
SHAPES, JOINTS = mujoco.mjtGeom, mujoco.mjtJoint
# A shape is an ellipsoid plus a box: which of its sizes are their half axes (3: none).
ELLIPSOID_AND_BOX = {
    SHAPES.mjGEOM_SPHERE: ((0, 0, 0), (3, 3, 3)),
    SHAPES.mjGEOM_CAPSULE: ((0, 0, 0), (3, 3, 1)),
    SHAPES.mjGEOM_CYLINDER: ((0, 0, 3), (3, 3, 1)),
    SHAPES.mjGEOM_ELLIPSOID: ((0, 1, 2), (3, 3, 3)),
    SHAPES.mjGEOM_BOX: ((3, 3, 3), (0, 1, 2)),
}
Colour = tuple[int, int, int]
Pair = tuple[float, float]
Side = Literal["below", "above"]


class Picture:
    """The robot from the side or from above, x to the right, the forbidden side in red.

    The picture follows the robot and leans towards the limit. The dot on the robot is the origin of
    its first body, whose x is the one that is limited; the ruler below says where it is, in metres.
    Where the limit is too close to zero to be told from it, the ruler is magnified. Capsules,
    spheres, boxes, cylinders and ellipsoids are drawn; `forbidden` is as in `MujocoRules`.
    """

    def __init__(self, model: mujoco.MjModel, limit: float, forbidden: Side) -> None:
        if forbidden not in ("below", "above"):
            raise ArgumentError(f"forbidden must be 'below' or 'above', not {forbidden!r}")
        if not np.isfinite(limit):
            raise ArgumentError(f"limit must be a finite number of metres, not {limit}")
        self.limit, self.sign = float(limit), -1 if forbidden == "below" else 1
        self.sheet, self.robot = Sheet(), Robot(model)
        self.span = self.robot.fitting_span()
        magnified = 10 * abs(self.limit)
        self.ruler_span = magnified if 0 < 4 * magnified < self.span else self.span

    def draw(self, data: mujoco.MjData) -> UInt8[np.ndarray, "400 640 3"]:
        """The picture of `data.qpos`; nothing in `data` changes."""
        self.robot.move(data.qpos)
        self.beyond = self.sign * (self.robot.x - self.limit)
        self.ink = LIMIT if self.beyond > 0 else INK
        self.draw_scene()
        self.draw_robot()
        self.draw_ruler()
        self.draw_words()
        return self.sheet.pixels.copy()

    def columns(self, x: ArrayLike, span: float) -> np.ndarray:
        """Pixels from the left to the positions `x`, where the picture is `span` metres wide."""
        middle = self.robot.x + np.clip((self.limit - self.robot.x) / 2, -LEAN * span, LEAN * span)
        return WIDTH / 2 + (np.asarray(x) - middle) * WIDTH / span

    def place(self, view: ArrayLike) -> Float[np.ndarray, "... 2"]:
        """Pixels from the left and from below to points of the view."""
        right, up = np.moveaxis(np.asarray(view), -1, 0)
        level, row = self.robot.ground, SCENE[0] + GROUND
        if self.robot.elevation > 0:
            level, row = self.robot.origin[1], sum(SCENE) / 2
        rows = row + (up - level) * WIDTH / self.span
        return np.stack([self.columns(right, self.span), rows], axis=-1)

    def draw_scene(self) -> None:
        """Sky, floor, grid, and the forbidden side."""
        robot, sine = self.robot, np.sin(self.robot.elevation)
        self.sheet.box((0, WIDTH), SCENE, SKY)
        floor = SCENE if sine > 0 else (SCENE[0], self.place((0, robot.ground))[1])
        self.sheet.box((0, WIDTH), floor, FLOOR if robot.has_floor else SKY)
        self.draw_forbidden(self.span, SCENE)
        if robot.has_floor:
            columns = self.columns(ticks_around(robot.x, self.span), self.span)
            self.sheet.line([columns, columns], np.transpose([floor]), SKY, 1.5)
        if sine > 0:
            ticks = ticks_around(robot.origin[1] / sine, self.span)
            rows = self.place(np.stack([ticks, sine * ticks], axis=-1))[:, 1]
            self.sheet.line([[0], [WIDTH]], [rows, rows], SKY, 1.5)
        self.sheet.line(self.columns([self.limit] * 2, self.span), SCENE, LIMIT, 3)

    def draw_forbidden(self, span: float, rows: Pair) -> None:
        """Red stripes over the forbidden side, which stay where they are in the world."""
        edge, height = float(self.columns(self.limit, span)), rows[1] - rows[0]
        left, right = np.clip((0, edge) if self.sign < 0 else (edge, WIDTH), 0, WIDTH).tolist()
        self.sheet.box((left, right), rows, tabular.FORBIDDEN)
        first = edge + np.ceil((left - height - edge) / HATCH_PERIOD) * HATCH_PERIOD
        starts = np.arange(first, right, HATCH_PERIOD)
        ends = np.clip([starts, starts + height], left, right)
        self.sheet.line(ends, rows[0] + ends - starts, tabular.HATCH, 1.5)

    def draw_robot(self) -> None:
        """The robot in blue and its shadow; grey is what stands still, the dot is x."""
        robot = self.robot
        if robot.elevation > 0:
            for outline in self.place(robot.outlines(flat=True)):
                self.sheet.polygon(outline, SHADOW)
        outlines = self.place(robot.outlines())
        for part in robot.far_to_near():
            self.sheet.polygon(outlines[part], robot.colours[part], SKY)
        dot = self.place(robot.origin)
        self.sheet.line((dot[0], dot[0]), (SCENE[0], dot[1]), self.ink, 1.5)
        self.sheet.polygon(dot + 4.5 * CIRCLE.T, self.ink, SKY)

    def draw_ruler(self) -> None:
        """The scale in metres with a pointer at the robot."""
        span, (low, high) = self.ruler_span, RULER
        self.sheet.box((0, WIDTH), (0, SCENE[0]), tabular.PAPER)
        self.sheet.box((0, WIDTH), RULER, SKY)
        self.draw_forbidden(span, RULER)
        for x, colour, width in ((self.limit, LIMIT, 3), (self.robot.x, self.ink, 1.5)):
            here, above = float(self.columns(x, span)), float(self.columns(x, self.span))
            if 0 < here < WIDTH:
                self.sheet.line((here, here, above), (low, high, SCENE[0]), colour, width)
        ticks = ticks_around(self.robot.x, span)
        for tick, column in zip(ticks, self.columns(ticks, span), strict=True):
            if 30 < column < WIDTH - 30:
                self.sheet.line((column, column), (low - 4, low + 5), INK)
                self.sheet.words(metres(tick), (column, 7), 12, INK, 0.5)
        self.sheet.line((0, WIDTH), (low, low), INK)
        tip = float(self.columns(self.robot.x, span))
        self.sheet.polygon(np.array([(tip, low), (tip - 8, high), (tip + 8, high)]), self.ink, SKY)

    def draw_words(self) -> None:
        """Position, distance to the limit, and what is forbidden."""
        self.sheet.box((0, WIDTH), (SCENE[1], HEIGHT), tabular.PAPER)
        form = "z.2f" if self.ruler_span > 0.5 else "z.4f"
        self.sheet.words(f"x = {metres(self.robot.x, form)}", (10, 372), 18, self.ink)
        side = "beyond" if self.beyond > 0 else "from"
        where = f"{metres(abs(self.beyond), form)} {side} the limit"
        self.sheet.words(where, (WIDTH - 10, 372), 15, self.ink, 1)
        words = f"forbidden: x {'<' if self.sign < 0 else '>'} {metres(self.limit)}"
        edge = float(self.columns(self.limit, self.span))
        words = f"◀ {words}" if edge < 0 else f"{words} ▶" if edge > WIDTH else words
        label = words, (edge + 12 * self.sign, SCENE[1] - 23), 13, LIMIT, (1 - self.sign) / 2
        left, right = self.sheet.words(*label)
        self.sheet.box((left - 6, right + 6), (SCENE[1] - 29, SCENE[1] - 7), SKY)
        self.sheet.words(*label)
        if self.ruler_span < self.span:
            note = f"ruler magnified {self.span / self.ruler_span:.0f} times"
            self.sheet.words(note, (WIDTH - 10, SCENE[0] + 8), 12, INK, 1)


class Robot:
    r"""The parts of a model in a view that keeps x: right = x, up = z \cos e + y \sin e, in metres.

    The elevation e is 0 for a robot that stays in the plane y = 0, 90 degrees for one that slides
    along y, and 45 degrees for one that moves freely.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        # A pose of its own, so that drawing changes nothing in the data it is given.
        self.model, self.pose = model, mujoco.MjData(model)
        free = (model.jnt_type == JOINTS.mjJNT_FREE).any()
        sideways = (model.jnt_axis[model.jnt_type == JOINTS.mjJNT_SLIDE, 1] != 0).any()
        self.elevation = np.pi / 4 if free else np.pi / 2 if sideways else 0.0
        self.view = np.array([[1, 0, 0], [0, np.sin(self.elevation), np.cos(self.elevation)]])
        kinds, planes = model.geom_type.tolist(), model.geom_type == SHAPES.mjGEOM_PLANE
        self.parts = np.flatnonzero([kind in ELLIPSOID_AND_BOX for kind in kinds])
        self.moving = model.body_weldid[model.geom_bodyid[self.parts]] > 0
        paint = model.geom_rgba[self.parts]
        look = self.moving * (1 + (paint == paint[self.moving][0]).all(axis=1))
        self.colours = [(tabular.WALL, tabular.START, tabular.AGENT)[each] for each in look]
        which = np.array([ELLIPSOID_AND_BOX[kinds[part]] for part in self.parts])
        sizes = np.pad(model.geom_size[self.parts], ((0, 0), (0, 1)))
        self.ellipsoids, self.boxes = (np.take_along_axis(sizes, which[:, i], 1) for i in (0, 1))
        self.move(model.qpos0)
        self.has_floor, self.ground = bool(planes.any()), 0.0
        heights = self.pose.geom_xpos[planes, 2] if planes.any() else self.outlines()[..., 1]
        self.ground = float(heights.min())

    def move(self, qpos: Float[np.ndarray, " q"]) -> None:
        """Take the pose `qpos`."""
        self.pose.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self.pose)
        self.x = float(self.pose.xpos[1, 0])
        self.origin = self.view @ self.pose.xpos[1]

    def outlines(self, flat: bool = False) -> Float[np.ndarray, "parts 65 2"]:
        r"""The outline of every part, or of its shadow straight below on the floor.

        With half axes in the columns of E (ellipsoid) and B (box), as they appear in the view, the
        farthest point in direction u is $E E^T u / |E^T u| + B sign(B^T u)$.
        """
        project = self.view * (1, 1, not flat)
        axes = project @ self.pose.geom_xmat[self.parts].reshape(-1, 3, 3)
        ellipsoids, boxes = axes * self.ellipsoids[:, None], axes * self.boxes[:, None]
        toward = ellipsoids.swapaxes(1, 2) @ CIRCLE
        toward /= np.maximum(np.linalg.norm(toward, axis=1, keepdims=True), 1e-12)
        points = ellipsoids @ toward + boxes @ np.sign(boxes.swapaxes(1, 2) @ CIRCLE)
        centres = self.pose.geom_xpos[self.parts] @ project.T
        centres[:, 1] += flat * self.ground * self.view[1, 2]
        return points.swapaxes(1, 2) + centres[:, None]

    def far_to_near(self) -> list[int]:
        """The order to paint in: what stands still, then far parts, then near ones."""
        depth = self.pose.geom_xpos[self.parts] @ (0, -self.view[1, 2], self.view[1, 1])
        return np.lexsort((-self.parts, depth.round(6), self.moving)).tolist()

    def fitting_span(self) -> float:
        """Metres from left to right that show the robot at a good size."""
        width, height = np.ptp(self.outlines()[self.moving].reshape(-1, 2), axis=0)
        return float(max(1.8 * width + 1.5, 1.2 * height * WIDTH / (SCENE[1] - SCENE[0] - GROUND)))


class Sheet:
    """A sheet of paper to draw on, in pixels from the left and from below."""

    def __init__(self) -> None:
        self.agg = RendererAgg(WIDTH, HEIGHT, 72)
        self.pixels = np.asarray(self.agg.buffer_rgba())[:, :, :3]

    def line(self, columns: ArrayLike, rows: ArrayLike, colour: Colour, width: float = 1) -> None:
        """A line through points; further axes of the points are further lines."""
        points = np.stack(np.broadcast_arrays(columns, rows), axis=-1)
        codes = np.full(points.shape[:-1], Path.LINETO)
        codes[0] = Path.MOVETO
        self.path(Path(points.swapaxes(0, -2).reshape(-1, 2), codes.T.ravel()), colour, width)

    def polygon(self, corners: np.ndarray, colour: Colour, rim: Colour | None = None) -> None:
        """A filled polygon, perhaps with a rim."""
        self.path(Path([*corners, *corners[:2]]), rim or colour, 2 if rim else 0, colour)

    def path(self, path: Path, edge: Colour, width: float, fill: Colour | None = None) -> None:
        """Paint any path, filled or as a line."""
        pen = self.agg.new_gc()
        pen.set_foreground(f"#{bytes(edge).hex()}")
        pen.set_linewidth(width)
        self.agg.draw_path(pen, path, IdentityTransform(), fill and to_rgb(f"#{bytes(fill).hex()}"))

    def box(self, columns: Pair, rows: Pair, colour: Colour) -> None:
        """A filled rectangle."""
        (left, right), (low, high) = columns, rows
        self.polygon(np.array([(left, low), (right, low), (right, high), (left, high)]), colour)

    def words(self, text: str, place: Pair, size: int, colour: Colour, anchor: float = 0) -> Pair:
        """Words that begin at `place` (anchor 1: end there); returns the columns they take."""
        cover = letters(text, size)
        height, width = cover.shape
        left = round(float(np.clip(place[0] - anchor * width, 12, WIDTH - width - 12)))
        top = HEIGHT - round(place[1]) - 3 * size // 2
        under = self.pixels[top : top + height, left : left + width]
        under[:] = tabular.blend(under, cover, colour)
        return left, left + width


@lru_cache(maxsize=256)
def letters(text: str, size: int) -> Float[np.ndarray, "height width"]:
    """How much of each pixel a text covers; kept, as most texts come again in the next picture."""
    font, sheet = FontProperties(fname=FONT, size=size), RendererAgg(WIDTH, 2 * size, 72)
    width = sheet.get_text_width_height_descent(text, font, False)[0]
    sheet.draw_text(sheet.new_gc(), 0, 3 * size // 2, text, font, 0)
    return np.asarray(sheet.buffer_rgba())[:, : round(width), 3] / 255


def metres(x: float, form: str = "z.6g") -> str:
    """A length in words, with a real minus sign; the z avoids minus zero."""
    return f"{x:{form}} m".replace("-", "\N{MINUS SIGN}")


def ticks_around(x: float, span: float) -> Float[np.ndarray, " ticks"]:
    """Round numbers (1, 2 or 5 times a power of ten) within `span` of x, far enough apart."""
    least = span * TICK_DISTANCE / WIDTH
    power = 10.0 ** np.floor(np.log10(least))
    step = power * next(times for times in (1, 2, 5, 10) if times * power >= least)
    return step * np.arange(np.ceil((x - span) / step), np.floor((x + span) / step) + 1)
