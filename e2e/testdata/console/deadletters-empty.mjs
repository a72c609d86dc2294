// Looks at the page of dead letters while there are none.
import { check, page, run, signIn, step } from './lib.mjs'

await run(async () => {
  await signIn('/flags')
  await step('empty', async () => {
    await page.getByRole('heading', { name: 'Flags' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('d')
    await page.getByRole('heading', { name: 'There are no dead letters' }).waitFor()
    await check('dead-letters-empty')
  })
})
