package process

import "io"

// Line processes one line of standard error.
func (b *LogPipe) Line(line []byte) { b.line(line, "stderr") }

// Read copies a whole stream.
func (b *LogPipe) Read(r io.Reader) { b.read(r) }

// End ends the stream.
func (b *LogPipe) End() { b.flush() }

// Tail returns the last lines.
func (b *LogPipe) Tail() []string { return b.tail() }
