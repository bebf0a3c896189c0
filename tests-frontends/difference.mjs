// Comparison of values as JSON.

import { isDeepStrictEqual } from "node:util";

const json = (value) => JSON.parse(JSON.stringify(value ?? null));

/** Returns a description of the first difference of two values, or `null` if they are equal. */
export function difference(is, should, path = "") {
  [is, should] = [json(is), json(should)];
  if (isDeepStrictEqual(is, should)) return null;
  const isNested = (value) => typeof value === "object" && value !== null;
  if (isNested(is) && isNested(should) && Array.isArray(is) === Array.isArray(should)) {
    for (const key of new Set([...Object.keys(is), ...Object.keys(should)])) {
      const found = difference(is[key], should[key], `${path}/${key}`);
      if (found) return found;
    }
  }
  return `${path || "/"} is ${JSON.stringify(is)} and should be ${JSON.stringify(should)}`;
}
