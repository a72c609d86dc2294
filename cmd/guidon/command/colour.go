package command

import "os"

// Colour is a colour of a terminal.
type Colour string

// The colours.
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Colour returns the text in the colour if the output is a terminal and NO_COLOR is not
// set, else the text.
func (e *Env) Colour(text string, c Colour) any {
	if c == "" || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !IsTerminal(e.Out) {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
