package signin

import "context"

// WithPasswordAfter is WithPassword that calls fn between the check of the password and the
// session.
func (s *Service) WithPasswordAfter(ctx context.Context, email, given string, fn func()) (SignedIn, error) {
	a, err := s.checkPassword(ctx, email, given, Client{})
	if err != nil {
		return SignedIn{}, err
	}
	fn()
	return s.signInChecked(ctx, a, Client{})
}
