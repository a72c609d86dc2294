package body

// MaxDepth bounds the nesting of JSON that was checked before: what a reader
// of any accepted body may meet.
const MaxDepth = 300
