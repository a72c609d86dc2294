// Upgrading a plugin whose executable was replaced.
import { useState } from 'preact/hooks'
import type { PluginInstance } from '../../api/types'
import { Code } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { newerConfig } from './words'

// Upgrade shows both versions. An executable that runs by its checksum is upgraded in the
// config file, as the API must not choose what runs; one without a checksum at once.
export function Upgrade({ plugin: p, busy, onUpgrade }: { plugin: PluginInstance; busy: boolean; onUpgrade: () => void }) {
  const [open, setOpen] = useState(false)
  const yaml = newerConfig(p)
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="button primary" disabled={busy} onClick={() => setOpen(true)}><Icon name="up" /> Upgrade</button>
      {open && (
        <Dialog title={`Upgrade ${p.name}`} onClose={close}>
          <div class="dialog-text">
            <p>Another file is at <span class="mono">{p.use}</span> than the one that runs.</p>
            <dl class="upgrade">
              <dt>Runs</dt><dd>{p.version && `version ${p.version}, `}sha256 <span class="mono">{p.sha256}</span></dd>
              <dt>Installed</dt><dd>sha256 <span class="mono">{p.installed_sha256}</span></dd>
            </dl>
            <p>The new process starts beside the old one and takes over when it works. No event is lost; if it fails, the old one goes on.</p>
            {yaml && <><p>Only the checksum in the config file decides what runs. Set it, and the server upgrades by itself:</p><Code label="In the config file" text={yaml} /></>}
          </div>
          <footer>
            <button type="button" class="button" onClick={close}>{yaml ? 'Close' : 'Cancel'}</button>
            {!yaml && <button type="button" class="button primary" onClick={() => { close(); onUpgrade() }}>Upgrade</button>}
          </footer>
        </Dialog>
      )}
    </>
  )
}
