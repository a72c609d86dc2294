package command

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// NotConfirmedError is a change that was not confirmed. Nothing was changed.
type NotConfirmedError struct {
	// Question is what the command would do; "" if the answer on the terminal was no.
	Question string
}

// Error says how a script confirms.
func (e *NotConfirmedError) Error() string {
	if e.Question == "" {
		return "nothing was changed"
	}
	return e.Question + "; confirm with --yes"
}

// Confirm asks the question on a terminal. Without a terminal it fails with
// *NotConfirmedError, because a script confirms with --yes, and so it does for any answer
// but yes.
func (e *Env) Confirm(question string) error {
	if !IsTerminal(e.In) {
		return &NotConfirmedError{question}
	}
	fmt.Fprintf(e.ErrOut, "%s. Go on? [y/N] ", question)
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil {
		return errors.Join(&NotConfirmedError{}, err)
	}
	if answer := strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &NotConfirmedError{}
	}
	return nil
}

// Change are the flags of commands that change something.
type Change struct {
	DryRun bool `name:"dry-run" help:"Print what would change; change nothing."`
	Yes    bool `short:"y" help:"Do not ask."`
}

// Ask asks for confirmation of a change unless --yes is given.
func (f Change) Ask(e *Env, what string) error {
	if f.Yes {
		return nil
	}
	return e.Confirm(what)
}

// Proceed asks for confirmation as Ask does. With --dry-run it prints what would change
// and returns false.
func (f Change) Proceed(e *Env, what string) (bool, error) {
	if f.DryRun {
		_, err := fmt.Fprintf(e.Out, "would %s\n", what)
		return false, err
	}
	err := f.Ask(e, what)
	return err == nil, err
}
