import { render } from 'preact'
import { LocationProvider } from 'preact-iso'
import './app/theme'
import './styles/tokens.css'
import './styles/base.css'
import './styles/parts.css'
import './styles/layout.css'
import { App } from './app/app'
import { watchLeaving } from './app/guard'

watchLeaving()
const root = document.getElementById('app')
if (root) render(<LocationProvider scope={/^\/($|\?|console|sign-in|reset-password|invitation)/}><App /></LocationProvider>, root)
