"""What must hold of every drawing."""

from itertools import combinations, pairwise
from xml.etree import ElementTree

TOUCH = 0.05
"""What two lengths may differ by where they are the same."""


def all_texts(scene):
    """Every line of text."""
    return [*scene.texts, *(text for box in scene.boxes for text in box.texts)]


def check_drawing(scene, document):
    """Assert that a drawing can be read: nothing on top of something else, and every line from something to something."""
    _check_document(scene, document)
    _check_places(scene)
    _check_arrows(scene)


def _check_document(scene, document):
    root = ElementTree.fromstring(document)
    assert root.get("viewBox") == f"0 0 {scene.width:g} {scene.height:g}"
    shown = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(shown) == sorted(text.text for text in all_texts(scene))
    assert root.find("{http://www.w3.org/2000/svg}title").text == scene.title
    for refers in ("href", "url(", "<script", "<image", "@import"):
        assert refers not in document


def _check_places(scene):
    for box in scene.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= scene.width
        assert box.y + box.height <= scene.height
        for text in box.texts:
            assert box.x - TOUCH <= text.left, (box, text)
            assert text.left + text.width <= box.x + box.width + TOUCH, (box, text)
            assert box.y <= text.y - 0.7 * text.size, (box, text)
            assert text.y <= box.y + box.height, (box, text)
        for one, other in combinations(box.texts, 2):
            same_line = abs(one.y - other.y) < 10
            assert not same_line or one.left + one.width <= other.left or other.left + other.width <= one.left
    for text in scene.texts:
        assert 0 <= text.left <= text.left + text.width <= scene.width
        assert 0 < text.y < scene.height
    solid = [box for box in scene.boxes if box.shape != "point"]
    for one, other in combinations(solid, 2):
        assert not overlap(one, other) or "frame" in (one.shape, other.shape), (one, other)
        if "frame" in (one.shape, other.shape):
            assert not overlap(one, other) or within(one, other) or within(other, one), (one, other)
    assert len({box.id for box in scene.boxes}) == len(scene.boxes)


def _check_arrows(scene):
    boxes = {box.id: box for box in scene.boxes}
    solid = [box for box in scene.boxes if box.shape not in ("frame", "point")]
    for arrow in scene.arrows:
        assert on_border(arrow.points[0], boxes[arrow.source]), arrow
        assert on_border(arrow.points[-1], boxes[arrow.target]), arrow
        for (x1, y1), (x2, y2) in pairwise(arrow.points):
            assert abs(x1 - x2) < TOUCH or abs(y1 - y2) < TOUCH, arrow  # lines are level or upright
            for box in solid:
                assert not (
                    min(x1, x2) < box.x + box.width - TOUCH
                    and max(x1, x2) > box.x + TOUCH
                    and min(y1, y2) < box.y + box.height - TOUCH
                    and max(y1, y2) > box.y + TOUCH
                ), (arrow, box)
            assert 0 <= min(x1, x2) <= max(x1, x2) <= scene.width
            assert 0 <= min(y1, y2) <= max(y1, y2) <= scene.height


def overlap(one, other):
    return (
        one.x < other.x + other.width - TOUCH
        and other.x < one.x + one.width - TOUCH
        and one.y < other.y + other.height - TOUCH
        and other.y < one.y + one.height - TOUCH
    )


def within(inner, outer):
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def on_border(point, box):
    x, y = point
    left, right, top, bottom = box.x, box.x + box.width, box.y, box.y + box.height
    level = left - TOUCH <= x <= right + TOUCH and min(abs(y - top), abs(y - bottom)) < TOUCH
    upright = top - TOUCH <= y <= bottom + TOUCH and min(abs(x - left), abs(x - right)) < TOUCH
    return level or upright
