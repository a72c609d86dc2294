import { queryOf } from '../../api/client'

// groupPath returns the path of a group. Its key is in the query: a path with the key ".." or
// one of slashes would lead elsewhere.
export function groupPath(type: number, key: string): string { return `/groups/${type}/group${queryOf({ key })}` }
