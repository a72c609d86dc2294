// The log: one JSON object a line on standard error.
const levels = ['debug', 'info', 'warn', 'error']
let least = 0

export function setLogLevel (name) {
  if (!levels.includes(name)) return false
  least = levels.indexOf(name)
  return true
}

// log writes one JSON object to standard error.
export function log (level, msg, fields = {}) {
  if (levels.indexOf(level) >= least) process.stderr.write(JSON.stringify({ level, msg, ...fields }) + '\n')
}
