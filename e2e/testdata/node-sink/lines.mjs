// A sink that appends events to a file, one JSON object a line. It uses no package of
// Guidon: only what docs/plugins/contract.md describes, and the .proto files.
import { serve } from './serve.mjs'
import { Lines } from './sink.mjs'

serve(Lines)
