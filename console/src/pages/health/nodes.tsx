// The nodes that share the database, and the partitions of their log.
import type { Schemas } from '../../api/types'
import { Tag, Time } from '../../ui/basics'
import { countText } from '../../ui/time'

export function Nodes({ cluster }: { cluster: Schemas['ClusterStatus'] }) {
  const name = (id: string) => cluster.nodes.find((n) => n.id === id)?.name || id || 'no node'
  return (
    <section class="health-part">
      <h2>{cluster.clustered ? 'Nodes' : 'Server'}</h2>
      {cluster.free.length > 0 && <p class="notice">No node has {cluster.free.join(', ')} right now. A node takes it within seconds.</p>}
      <div class="list health-table" tabIndex={0} role="region" aria-label="Nodes">
        <table>
          <thead><tr><th>Name</th><th>State</th><th>Version</th><th>Roles</th><th>Partitions</th><th>Jobs</th><th>Started</th></tr></thead>
          <tbody>
            {cluster.nodes.map((n) => (
              <tr key={n.id}>
                <td>{n.name || n.id}{n.id === cluster.node && <span class="faint"> (answers)</span>}</td>
                <td><Tag tone={n.state === 'alive' ? 'ok' : n.state === 'draining' ? 'warn' : 'bad'}>{n.state}</Tag></td>
                <td class="mono">{n.version}</td><td>{n.roles.join(', ') || 'all'}</td><td>{n.partitions.length ? countText(n.partitions.length) : '–'}</td><td>{n.jobs.join(', ') || '–'}</td><td><Time at={n.started_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {cluster.partitions && (
        <div class="list health-table" tabIndex={0} role="region" aria-label="Partitions">
          <table>
            <thead><tr><th>Partition</th><th>Node</th><th>Reader</th><th>Records behind</th><th>Oldest</th></tr></thead>
            <tbody>
              {cluster.partitions.flatMap((p) => p.readers.map((r) => <tr key={`${p.partition}/${r.name}`}><td>{p.partition}</td><td>{name(p.node)}</td><td class="mono">{r.name}</td><td>{countText(r.records_behind)}</td><td>{r.oldest_at ? <Time at={r.oldest_at} /> : '–'}</td></tr>))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
