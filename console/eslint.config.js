import js from '@eslint/js'
import ts from 'typescript-eslint'

export default ts.config({ ignores: ['**/*.gen.d.ts'] }, js.configs.recommended, ...ts.configs.strict, {
  files: ['src/**/*.{ts,tsx}'],
  rules: {
    'no-undef': 'off', // the compiler knows
    'no-restricted-properties': ['error', { property: 'innerHTML', message: 'Text from the server is never markup.' }, { property: 'outerHTML' }],
    'no-restricted-syntax': ['error', { selector: 'JSXAttribute[name.name="dangerouslySetInnerHTML"]', message: 'Text from the server is never markup.' }],
    'max-lines': ['error', 400],
    '@typescript-eslint/no-non-null-assertion': 'error',
  },
})
