import type { ComponentChildren } from 'preact'
import type { Delivery, PluginInstance } from '../../api/types'
import { usePlace } from '../../app/place'
import { Code, Time } from '../../ui/basics'
import { valueText } from '../../ui/chart/data'
import { Icon } from '../../ui/icon'
import { Charts } from './charts'
import { countText, plural } from '../../ui/time'
import { useSamples } from './poll'
import { deadLettersPath, isLeftOut, lagWords, rateOf, rateText, refusedWords } from './words'

// Overview shows how an instance does, and why if it does not. refused is the number of events
// that it has refused in the last hour.
export function Overview({ plugin: p, refused }: { plugin: PluginInstance; refused: number }) {
  const { to } = usePlace()
  return (
    <div class="overview">
      {refused > 0 && (
        <div class="problem"><Icon name="alert" /><div>
          <p>{refusedWords(p.name, refused)} They are dead letters: their errors say why.</p>
          <a class="button" href={to(deadLettersPath(`sink/${p.name}`, '1h'))}>Show the dead letters</a>
        </div></div>
      )}
      {p.trouble && <div class="problem"><Icon name="alert" /><div><p>{p.trouble}</p></div></div>}
      {p.delivery?.paused && <p class="notice">Paused <Time at={p.delivery.paused.at} />: {p.delivery.paused.reason}. Events wait in the journal.</p>}
      {p.installed_sha256 && <p class="notice">A newer version is installed: the file at <span class="mono">{p.use}</span> was replaced. <b>Upgrade</b> switches over without a gap.</p>}
      {p.hint && !p.installed_sha256 && <p class="notice">{p.hint}</p>}
      {p.delivery && <Flow plugin={p} delivery={p.delivery} />}
      {!isLeftOut(p) && <Charts key={p.name} plugin={p} />}
      {(p.diagnostics ?? []).length > 0 && (
        <section class="card"><div class="card-body"><h2>Problems of the config</h2>
          <ul class="diagnostics">{p.diagnostics?.map((d, i) => <li key={i}><span class="mono">{d.pointer || 'config'}</span> {d.summary}{d.detail && <span class="faint"> {d.detail}</span>}</li>)}</ul>
        </div></section>
      )}
      <section class="card"><div class="card-body"><h2>Process</h2>
        <dl class="facts">
          <Fact name="State">{p.state}{p.reason && <span class="faint"> {p.reason.replaceAll('_', ' ')}</span>}, <Time at={p.since} /></Fact>
          <Fact name="Plugin">{p.plugin ?? p.use}{p.version && ` ${p.version}`}{p.sdk && <span class="faint"> {p.sdk}</span>}</Fact>
          <Fact name="Upgrade">{p.address ? 'its process is started by something else, and upgraded there' : !p.use.includes('/') ? 'bundled: it is upgraded with the server' : p.installed_sha256 ? 'a newer version is installed' : 'replace the file: the newer version is offered here'}</Fact>
          {p.sha256 && <Fact name="sha256"><span class="mono">{p.sha256}</span></Fact>}
          {p.pid !== undefined && p.pid > 0 && <Fact name="Process id">{p.pid}</Fact>}
          {p.generation !== undefined && <Fact name="Config">generation {p.generation}</Fact>}
          <Fact name="Restarts">{countText(p.restarts)}</Fact>
          {p.next_start && <Fact name="Next start"><Time at={p.next_start} /></Fact>}
          {p.required && <Fact name="Required">the server is not ready without it</Fact>}
          {p.last_error && <Fact name="Last error"><span class="hostile">{p.last_error}</span>{p.last_error_at && <span class="faint"> <Time at={p.last_error_at} /></span>}</Fact>}
          {p.exit && <Fact name="Last exit">{p.exit.signal ? `signal ${p.exit.signal}` : `code ${p.exit.code}`}{p.exit.out_of_memory ? ', out of memory' : ''}{p.exit.expected ? ', as asked' : ''}, <Time at={p.exit.at} /></Fact>}
        </dl>
        {(p.exit?.stderr ?? []).length > 0 && !p.exit?.expected && <Code label="Last output (stderr)" text={(p.exit?.stderr ?? []).join('\n')} />}
      </div></section>
      {(p.operators ?? []).length > 0 && (
        <section class="card"><div class="card-body"><h2>Operators for filters</h2>
          <dl class="facts">{p.operators?.map((o) => <Fact key={o.id} name={o.id}>{o.label}{o.doc && <span class="faint"> {o.doc}</span>}</Fact>)}</dl>
        </div></section>
      )}
    </div>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>
}

function Flow({ plugin, delivery: d }: { plugin: PluginInstance; delivery: Delivery }) {
  const samples = useSamples(plugin)
  const rate = rateOf(samples.slice(-20))
  const { to } = usePlace()
  return (
    <section class="numbers" aria-label="Delivery">
      <div><span class="number">{rate === undefined ? '…' : rateText(rate)}</span><span class="faint">{countText(d.delivered)} delivered since the server started</span></div>
      <div><span class="number">{lagWords(d)}</span><span class="faint">{d.oldest_at ? <>the oldest is from <Time at={d.oldest_at} />, {valueText(d.lag_bytes, 'bytes')}</> : 'nothing waits'}</span></div>
      <div><span class="number">{d.dead_letters ? <a href={to(deadLettersPath(`sink/${plugin.name}`))}>{plural(d.dead_letters, 'dead letter')}</a> : 'No dead letters'}</span><span class="faint">{d.filtered ? `${countText(d.filtered)} filtered out` : 'since the server started'}</span></div>
      <div><span class="number">{d.state.replaceAll('_', ' ')}</span><span class="faint"><Time at={d.since} />{d.in_flight ? `, ${plural(d.in_flight, 'batch', 'batches')} on the way` : ''}</span></div>
    </section>
  )
}
