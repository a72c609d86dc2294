// Which events count, with the recent ones beside it, and what the action is called.
import { Field } from '../../ui/basics'
import { Chips } from '../flags/values'
import type { Draft } from './draft'
import { useKnown } from './known'
import { Preview, usePreview } from './preview'
import { Steps } from './steps'

export function Editor({ project, draft, problems, fixed, locked, onChange }: { project: string; draft: Draft; problems: Record<string, string>; fixed?: boolean; locked?: boolean; onChange: (d: Draft) => void }) {
  const known = useKnown(project)
  const preview = usePreview(project, draft)
  const set = (changes: Partial<Draft>) => onChange({ ...draft, ...changes })
  const wrong = preview.error?.attr && !preview.loading ? { [preview.error.attr]: preview.error.message } : {}
  return (
    <div class="action-editor">
      <fieldset class="stack" disabled={fixed || locked}>
        {fixed && !locked && <p class="notice" role="note">A condition has a number that a browser cannot hold exactly, above 9,007,199,254,740,991 or with too many digits; it is shown rounded. Saving it here would change it: edit the action with the API.</p>}
        <div class="two">
          <Field id="action-name" label="Name" error={problems.name}>
            <input id="action-name" value={draft.name} autocomplete="off" placeholder="Signed up" maxLength={400} aria-invalid={Boolean(problems.name)} onInput={(e) => set({ name: e.currentTarget.value })} />
          </Field>
          <div class="field"><span class="label">Tags</span><Chips list={draft.tags} label="Tag" placeholder="add a tag" onChange={(tags) => set({ tags: tags.map((t) => t.toLowerCase()) })} /></div>
        </div>
        <Field id="action-description" label="Description" error={problems.description}><textarea id="action-description" rows={2} value={draft.description} placeholder="What it is for" onInput={(e) => set({ description: e.currentTarget.value })} /></Field>
        <h2>What counts</h2>
        <Steps project={project} steps={draft.steps} known={known} problems={{ ...wrong, ...problems }} onChange={(steps) => set({ steps })} />
      </fieldset>
      <Preview project={project} draft={draft} preview={preview} />
    </div>
  )
}
