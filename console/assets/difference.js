// In what two values differ, field by field.

const say = v => v === undefined ? '–' : JSON.stringify(v);
const object = v => v !== null && typeof v === 'object';

// difference lists the paths at which a and b differ, in order.
export function difference(a, b, path = '') {
  if (object(a) && object(b) && Array.isArray(a) === Array.isArray(b)) {
    const names = Array.isArray(a) ? Array.from({ length: Math.max(a.length, b.length) }, (_, i) => i) : [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
    return names.flatMap(name => difference(a[name], b[name], Array.isArray(a) ? `${path}[${name}]` : path ? `${path}.${name}` : name));
  }
  return say(a) === say(b) ? [] : [{ path, before: say(a), after: say(b) }];
}
