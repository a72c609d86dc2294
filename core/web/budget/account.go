package budget

import "time"

// Account is what one request holds of a Budget. The zero value is unlimited,
// and so is a nil Account. It is for one goroutine.
type Account struct {
	budget     *Budget
	held       int64
	processing bool // between StartProcessing and EndProcessing
	slot       bool // occupies a slot of budget
	small      bool // counts among the small requests of budget
	paused     time.Duration
}

// Open makes a an account of b, which may be nil. What a held before must have
// been released.
func (a *Account) Open(b *Budget) { *a = Account{budget: b} }

// Take takes n more bytes. It fails with Unavailable if the budget is used up;
// the account then holds what it held before.
func (a *Account) Take(n int) error {
	if a == nil || n <= 0 {
		return nil
	}
	if a.budget != nil {
		if err := a.occupy(a.held + int64(n)); err != nil {
			return err
		}
		if !a.budget.take(a.held, int64(n)) {
			return errSaturated
		}
	}
	a.held += int64(n)
	return nil
}

// Return gives n bytes back, at most what the account holds.
func (a *Account) Return(n int) {
	if a == nil || n <= 0 {
		return
	}
	back := min(int64(n), a.held)
	a.held -= back
	if a.budget != nil {
		a.budget.used.Add(-back)
	}
}

// Held returns the bytes that the account holds.
func (a *Account) Held() int {
	if a == nil {
		return 0
	}
	return int(a.held)
}

// Release gives everything back, also the slot. Further calls do nothing.
func (a *Account) Release() {
	a.EndProcessing()
	a.EndSmall()
	if a != nil && a.held > 0 {
		a.Return(int(a.held))
	}
}
