package app

// NewOperators binds the operators of a host's matchers.
var NewOperators = newOperators

// Bootstrapped is closed when the first accounts exist and First is set.
func (s *Server) Bootstrapped() <-chan struct{} { return s.late }

// ConsoleURL is the URL of the console, with the actual port.
func (s *Server) ConsoleURL() string { return s.links.URL() }
