// The places of items in a rectangle, in proportion to their counts, as near to squares as rows allow.
function squarified(items, x, y, width, height) {
  const scale = (width * height) / items.reduce((sum, item) => sum + item.count, 0);
  const left = items.map((node) => ({ node, area: node.count * scale })).sort((a, b) => b.area - a.area);
  const places = [];
  const worst = (row, side) => {
    const sum = row.reduce((total, each) => total + each.area, 0);
    const most = row[0].area;
    const least = row[row.length - 1].area;
    return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
  };
  while (left.length) {
    const side = Math.min(width, height);
    const row = [left.shift()];
    while (left.length && worst([...row, left[0]], side) <= worst(row, side)) row.push(left.shift());
    const sum = row.reduce((total, each) => total + each.area, 0);
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (const each of row) {
      const length = thick > 0 ? each.area / thick : 0;
      places.push(
        width >= height
          ? { node: each.node, x, y: y + along, width: thick, height: length }
          : { node: each.node, x: x + along, y, width: length, height: thick },
      );
      along += length;
    }
    if (width >= height) {
      x += thick;
      width -= thick;
    } else {
      y += thick;
      height -= thick;
    }
  }
  return places;
}
