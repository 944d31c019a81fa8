"""What holds for a page of any size, as figures: nothing overlaps, is cut off, or is too small for a finger."""

from .conftest import Visitor

# Every visible control with its box; what lies over it in its middle; what sticks out of the page sideways.
MEASURE = """(finger) => {
  const seen = (node) => node.offsetParent !== null && getComputedStyle(node).visibility === 'visible'
    && Number(getComputedStyle(node).opacity) > 0 && node.getBoundingClientRect().width > 0;
  const named = (node) => node.id || node.dataset.control || node.textContent.trim() || node.className;
  const controls = [...document.querySelectorAll('button, a[href], input:not([type=file]), select')].filter(seen)
    .filter((node) => !node.matches('.skip, .switch input') && !node.closest('.toast, .panel, .chips'));
  const boxes = controls.map((node) => [named(node), node.getBoundingClientRect(), node]);
  const picture = document.getElementById('frame')?.getBoundingClientRect();
  const problems = [];
  const cross = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  boxes.forEach(([name, box, node], i) => {
    const cap = node.classList.contains('cap');
    if (box.left < -1 || box.right > document.documentElement.clientWidth + 1) problems.push(`${name} sticks out`);
    if (cap && (box.width < 44 || box.height < 44)) problems.push(`${name} is ${box.width} x ${box.height}`);
    if (finger && Math.min(box.width, box.height) < 43.5 && !node.matches('input[type=text]'))
      problems.push(`${name} is ${box.width} x ${box.height} for a finger`);
    if (picture && cross(box, picture) && !node.closest('.notice')) problems.push(`${name} lies on the picture`);
    for (const [other, there, that] of boxes.slice(i + 1))
      if (cross(box, there) && !node.contains(that) && !that.contains(node)) problems.push(`${name} overlaps ${other}`);
    for (const text of cap ? node.querySelectorAll('b, span') : [])
      if (text.scrollWidth > text.clientWidth + 1 && text.clientWidth > 0) problems.push(`${name} is cut off`);
  });
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) problems.push('the page is too wide');
  return { problems, picture: picture && [picture.width, picture.height] };
}"""


def problems(visitor: Visitor, finger: bool = False) -> list[str]:
    """What is wrong with the page as it stands; an empty list is right."""
    measured: dict[str, list[str]] = visitor.page.evaluate(MEASURE, finger)
    return measured["problems"]


def picture(visitor: Visitor) -> tuple[float, float]:
    """Width and height of the picture in CSS pixels."""
    width, height = visitor.page.evaluate(MEASURE, False)["picture"]
    return float(width), float(height)
