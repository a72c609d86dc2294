// agentWords names the browser and the system of a User-Agent, or returns its beginning.
export function agentWords(agent: string): string {
  const browser = /\b(Edg|OPR|Firefox|HeadlessChrome|Chrome|CriOS|FxiOS)\//.exec(agent)?.[1] ?? (/\bVersion\/\S+.*\bSafari\//.test(agent) ? 'Safari' : undefined)
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', HeadlessChrome: 'Chrome', CriOS: 'Chrome', FxiOS: 'Firefox' }
  const latest = /\bEdg\//.test(agent) ? 'Edg' : /\bOPR\//.test(agent) ? 'OPR' : browser
  const system = /iPhone|iPad/.test(agent) ? 'iOS' : /Android/.test(agent) ? 'Android' : /Windows/.test(agent) ? 'Windows' : /Mac OS X/.test(agent) ? 'macOS' : /CrOS/.test(agent) ? 'ChromeOS' : /Linux/.test(agent) ? 'Linux' : ''
  if (!latest) return agent.slice(0, 60) || 'Unknown browser'
  return (names[latest] ?? latest) + (system && ` on ${system}`)
}
