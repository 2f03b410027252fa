// React as far as one component goes: state, memoised calls, and effects after a render. For the tests of the hook.
let cells = [];
let place = 0;
let effects = [];

const same = (one, other) => one.length === other.length && one.every((value, at) => Object.is(value, other[at]));
const cell = (first) => (cells[place] ??= first()) && cells[place++];

export function useState(first) {
  const mine = cell(() => ({ value: first }));
  return [mine.value, (next) => (mine.value = typeof next === "function" ? next(mine.value) : next)];
}
export function useCallback(call, watched) {
  const mine = cell(() => ({ call, watched }));
  if (!same(mine.watched, watched)) Object.assign(mine, { call, watched });
  return mine.call;
}
export function useEffect(effect, watched) {
  const mine = cell(() => ({}));
  if (!mine.watched || !same(mine.watched, watched)) effects.push(effect);
  mine.watched = watched;
}

/** Another component. */
export function unmount() {
  cells = [];
}
/** What the hook gives now; what it has begun goes on meanwhile. */
export function render(hook) {
  place = 0;
  effects = [];
  const given = hook();
  for (const effect of effects) effect();
  return given;
}
